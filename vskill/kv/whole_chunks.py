"""Read a chunk that has nothing wrong with it, in the way that costs least on each database.

SQLite hands over a select row by row, and for each row a thread has to win the interpreter back from those that decode.
Here SQLite puts the chunk together by itself, beside the interpreter, and hands over one row. PostgreSQL works beside
it anyway, and finds neighbours faster than single keys: as long as the keys of a stream are neighbours, it is asked for
ranges.

What cannot be told apart here is read again in the plain way; a select that fails is halved by the reader, down to
chunks that are so small that they are read in the plain way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import lt
from threading import Lock
from typing import Any, Final

from vskill.kv.codec import decode
from vskill.kv.outcomes import Outcome, Row, decode_row
from vskill.kv.statements import Statements

# Fewer keys than this are read in the plain way, which costs them nothing.
FEWEST: Final = 50
# How many others may lie among the keys of a chunk before they count as strangers to one another.
STRANGERS: Final = 64

# Decoding needs the interpreter, which runs one thread at a time; to wait here costs less than to fight for it.
decoding: Final = Lock()


Ask = Callable[[str, Mapping[str, Any]], list[Any]]
"""Send a statement with its parameters to the database and return the rows."""


@dataclass
class Neighbours:
    """Whether the keys of a stream are taken to be neighbours; found out chunk by chunk."""

    expected: bool = True


def read_whole(
    ask: Ask, wording: Statements, namespace: str, keys: Sequence[str], neighbours: Neighbours
) -> list[Outcome] | None:
    """Return the outcomes of those of ``keys`` that are there, or ``None`` where the plain way has to be taken.

    Raises whatever the database has against it.
    """
    if len(keys) < FEWEST:
        return None
    if wording.vendor == "sqlite":
        [together] = ask(wording.read_keys_together, {"namespace": namespace, "keys": wording.keys(keys)})
        return _decode_together(*together)
    if not (neighbours.expected and all(map(lt, keys, keys[1:]))):
        return None
    limit = len(keys) + STRANGERS
    bounds = {"namespace": namespace, "first": keys[0], "last": keys[-1], "limit": limit}
    rows: list[Row] = ask(wording.read_range, bounds)
    if len(rows) == limit:
        neighbours.expected = False
        return None
    wanted = frozenset(keys)
    with decoding:
        return [decode_row(row) for row in rows if row[0] in wanted]


def _decode_together(described: str, values: str | None) -> list[Outcome] | None:
    """Return the outcomes of entries whose values stand in one text, or ``None`` where something else than texts is
    among them."""
    text = values or ""
    outcomes: list[Outcome] = []
    end = 0
    with decoding:
        try:
            entries = decode(described)
        except ValueError:
            # SQLite writes a number of a damaged row as JSON does not.
            return None
        for key, version, length, metadata, expired, is_text in entries:
            if not is_text:
                return None
            start, end = end, end + length
            outcomes.append(decode_row((key, text[start:end], version, metadata, expired)))
    # A text with a NUL is longer than SQLite says; two that are no UTF-8 may be shorter as neighbours than alone.
    return outcomes if end == len(text) and "\0" not in text else None
