"""Who has nothing in work in a consumer: the SQL by which the batches that it keeps free go to newcomers alone.

A publisher whose work hangs could otherwise fill every batch of a consumer, and the next message of another would wait
for the end of one. Turns put the first message of each publisher near the front, so only the first ``LOOKS_AT``
messages that wait are looked at: a claim costs the same whatever else waits.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

# Above the number of messages that consumers take at once, and small enough to be read in a millisecond.
LOOKS_AT: Final = 200

_NAMES: Final = {"sqlite": "JSON_EACH(%(without)s)", "postgresql": "JSON_ARRAY_ELEMENTS_TEXT(%(without)s::json)"}


def candidates(vendor: str, table: str, waits: str, *, leaves_out: bool) -> tuple[str, str]:
    """Return the SQL of the messages that may be claimed: table expressions, and a FROM clause with its condition.

    ``vendor`` is that of the database, ``table`` the quoted name of the table of messages, and ``waits`` the condition
    that a message waits. With ``leaves_out`` they are those near the front whose publishers are not left out, and the
    parameter ``without`` (``as_parameter``) says which those are.
    """
    if not leaves_out:
        return "", f"FROM {table} WHERE {waits}"
    near_the_front = (
        f"front AS MATERIALIZED (SELECT id, publisher FROM {table} WHERE {waits} "  # noqa: S608 - names of our own, no input
        f"ORDER BY turn, due_at, id LIMIT {LOOKS_AT}), "
        f"left_out AS MATERIALIZED (SELECT value AS name FROM {_NAMES[vendor]} AS given), "
        "newcomers AS MATERIALIZED (SELECT id FROM front WHERE NOT EXISTS (SELECT 1 FROM left_out "
        "WHERE publisher = name OR SUBSTR(publisher, 1, LENGTH(name) + 1) = name || '/')), "
    )
    # Each by its id: either database might rather walk the index over turns, which has the order that a claim asks for,
    # until it has met enough of them, and past everything that waits where there are none. The condition is asked
    # again, because another worker may have claimed one since it was met near the front.
    if vendor == "postgresql":
        return near_the_front, f"FROM {table} WHERE id = ANY(ARRAY(SELECT id FROM newcomers)) AND {waits}"  # noqa: S608 - as above
    return near_the_front, f"FROM {table} NOT INDEXED WHERE id IN (SELECT id FROM newcomers) AND {waits}"  # noqa: S608 - as above


def as_parameter(publishers: Collection[str]) -> str:
    """Return the parameter ``without`` that leaves out ``publishers``, and those below them (``host/owner``)."""
    return json.dumps(sorted(publishers))
