"""Whose message comes next: the SQL of turns, which share the queue of an environment out among publishers.

This is self-clocked fair queueing. A turn is a number, and the lowest is received first. A message that is sent gets
the turn of the message of its publisher before it, or that of the front of the queue where that is higher, plus one
divided by its weight. So a publisher has one message in each round (or as many as its weight), however many wait, and
one that has nothing waiting joins the round that has begun, ahead of what a flood has in later rounds. What joins
later has a higher turn than the front, so nobody is overtaken without end, not even by ever new publishers.

Among the messages of one publisher, turns rise with ``due_at``, the order by priority and age. A message of higher
priority that is sent has no turn above that of the message which it precedes; equal turns go by ``due_at``.

The turn is computed once, when a message is sent, so that the claim reads one index in order, whatever waits. A turn
depends on the messages that are there alone: there is no counter to keep, to repair or to wait for.
"""

from __future__ import annotations

from typing import Final

_LEAST: Final = {"sqlite": "MIN", "postgresql": "LEAST"}
_GREATEST: Final = {"sqlite": "MAX", "postgresql": "GREATEST"}
# Above every turn.
_NEVER: Final = "1e300"


def _in_row(table: str) -> str:
    return f"SELECT turn FROM {table} WHERE environment = %(environment)s AND parked_at IS NULL AND turn IS NOT NULL"  # noqa: S608 - the name of our own table


def front_turn(table: str) -> str:
    """Return the SQL of the turn of the first message that waits, or the last one in work, or 0.

    ``table`` is the quoted name of the table of messages. Parameter: environment.
    """
    # Only those in work stand before the first that waits, and there are at most as many as all consumers hold.
    first = f"{_in_row(table)} AND leased_until IS NULL ORDER BY turn, due_at, id LIMIT 1"
    last = f"{_in_row(table)} ORDER BY turn DESC LIMIT 1"
    return f"COALESCE(({first}), ({last}), 0)"


def turn_of(vendor: str, table: str, *, publisher: str, weight: str, place: str = "1", front: str = "") -> str:
    """Return the SQL of the turn of a message whose ``due_at`` is that of the row ``t``.

    ``vendor`` is that of the database, and ``table`` the quoted name of the table of messages. The others are SQL:
    the ``publisher`` and the ``weight`` of the message, its ``place`` among several of its publisher that get a turn at
    once (from 1), and the name of a table expression with ``front_turn``, which is computed here without one.
    Parameter: environment.
    """
    of_publisher = f"{_in_row(table)} AND publisher = {publisher}"
    before = f"{of_publisher} AND due_at <= t.due_at ORDER BY due_at DESC, id DESC LIMIT 1"
    after = f"{of_publisher} AND due_at > t.due_at ORDER BY due_at, id LIMIT 1"
    begin = f"(SELECT turn FROM {front})" if front else front_turn(table)  # noqa: S608 - as above
    usual = f"{_GREATEST[vendor]}(COALESCE(({before}), 0), {begin}) + {place} / CAST({weight} AS DOUBLE PRECISION)"
    return f"{_LEAST[vendor]}(COALESCE(({after}), {_NEVER}), {usual})"
