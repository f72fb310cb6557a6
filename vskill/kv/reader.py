"""Read keys in chunks, and let one bad row cost no more than itself.

A chunk is one select. When it fails, the chunk is halved until the rows that cannot be read stand alone: two bad rows
among twenty thousand cost those two. Halving has a budget, and a database that does not answer is one failure and not
five hundred.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

from django.db import DatabaseError, InterfaceError, connections, transaction

from vskill.kv.models import AbstractKVEntry
from vskill.kv.outcomes import Outcome, Row, Status, decode_row
from vskill.kv.probe import probe
from vskill.kv.statements import statements
from vskill.kv.whole_chunks import Neighbours, decoding, read_whole

CHUNK_SIZE: Final = 500
LONGEST_REASON: Final = 200
RECONNECTIONS: Final = 5
# What a select raises when a database, its driver or the text of a row is at fault; all else is a mistake of ours.
READ_FAILURES: Final = (DatabaseError, InterfaceError, UnicodeDecodeError)
# A key that no entry can have: a select of it reads no row, so what fails then is not a row.
NO_KEY: Final = ""

logger = logging.getLogger(__name__)


def reason_of(error: BaseException) -> str:
    """Return the first line of an error, short enough for an outcome and a log."""
    lines = str(error).strip().splitlines()
    return lines[0][:LONGEST_REASON] if lines else type(error).__name__


class _ChunkReader:
    """One chunk: its rows, and what could not be read with the reason."""

    def __init__(
        self,
        model: type[AbstractKVEntry],
        alias: str,
        namespace: str,
        budget: int,
        given_up: Callable[[], bool],
        neighbours: Neighbours,
    ) -> None:
        self._connection = connections[alias]
        self._statements = statements(model, self._connection.vendor)
        self._namespace = namespace
        # As many selects as there are keys. Finding one bad row of 500 takes 18, fifty of them about 430.
        self._budget = budget
        self._given_up = given_up
        self._neighbours = neighbours
        self._reconnections = RECONNECTIONS
        self._answers = False
        self._away = ""
        self.outcomes: dict[str, Outcome] = {}

    def read(self, keys: Sequence[str]) -> None:
        if self._given_up():
            self._settle(keys, Status.TIMED_OUT, "nobody waits for it any more")
            return
        if self._away:
            self._settle(keys, Status.UNREADABLE, self._away)
            return
        try:
            found = read_whole(self._ask, self._statements, self._namespace, keys, self._neighbours)
            if found is None:
                rows = self._select(keys)
                with decoding:
                    found = [decode_row(row) for row in rows]
        except READ_FAILURES as error:
            self._after_failure(keys, error)
            return
        outcomes = self.outcomes
        for outcome in found:
            outcomes[outcome.key] = outcome
        if len(found) < len(keys):
            for key in keys:
                if key not in outcomes:
                    outcomes[key] = Outcome(key, Status.MISSING)

    def _ask(self, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        # A select that fails inside a transaction of the caller must not take that transaction with it.
        alias, inside = self._connection.alias, self._connection.in_atomic_block
        with (
            probe.selecting(),
            transaction.atomic(using=alias) if inside else nullcontext(),
            self._connection.cursor() as cursor,
        ):
            cursor.execute(statement, parameters)
            rows: list[Any] = cursor.fetchall()
            return rows

    def _select(self, keys: Sequence[str]) -> list[Row]:
        parameters = {"namespace": self._namespace, "keys": self._statements.keys(keys)}
        return self._ask(self._statements.read_keys, parameters)

    def _after_failure(self, keys: Sequence[str], error: Exception) -> None:
        # It may have been a row that nobody asked for, between two that were.
        self._neighbours.expected = False
        if self._connection_was_lost():
            self.read(keys)
        elif not self._a_row_is_to_blame():
            # Remembered, because what is left of the chunk would meet the same failure.
            self._away = reason_of(error)
            logger.error("%d keys of %r were not read: %s", len(keys), self._namespace, self._away)
            self._settle(keys, Status.UNREADABLE, self._away)
        elif len(keys) == 1:
            logger.error("%r of %r cannot be read: %s", keys[0], self._namespace, reason_of(error))
            self._settle(keys, Status.UNREADABLE, reason_of(error))
        elif self._budget < 2:
            logger.error("%d keys of %r were given up: too many bad rows", len(keys), self._namespace)
            self._settle(keys, Status.UNREADABLE, f"too many rows beside it are bad: {reason_of(error)}")
        else:
            self._budget -= 2
            middle = len(keys) // 2
            self.read(keys[:middle])
            self.read(keys[middle:])

    def _connection_was_lost(self) -> bool:
        """Return whether the connection broke and a new one could be made, as often as a chunk may have a new one."""
        connection = self._connection
        if not self._reconnections or connection.in_atomic_block or connection.connection is None:
            return False
        if connection.is_usable():
            return False
        self._reconnections -= 1
        try:
            connection.close()
            connection.ensure_connection()
        except READ_FAILURES:
            return False
        return True

    def _a_row_is_to_blame(self) -> bool:
        if self._connection.connection is None:
            return False
        if not self._answers:
            try:
                self._select([NO_KEY])
            except READ_FAILURES:
                return False
            self._answers = True
        return True

    def _settle(self, keys: Sequence[str], status: Status, reason: str) -> None:
        for key in keys:
            self.outcomes[key] = Outcome(key, status, detail=reason)


def read_chunk(
    model: type[AbstractKVEntry],
    alias: str,
    namespace: str,
    keys: Sequence[str],
    *,
    given_up: Callable[[], bool] = lambda: False,
    neighbours: Neighbours | None = None,
) -> dict[str, Outcome]:
    """Return the outcome of each of at most ``CHUNK_SIZE`` keys, read now, on the connection of this thread.

    Never raises for a row: one that cannot be read is ``UNREADABLE``, with the database's reason in ``detail``.
    ``given_up`` is asked before each attempt; once it says so, what is left is ``TIMED_OUT``. ``neighbours`` is shared
    by the chunks of one stream; keys that have nothing to do with one another have none.
    """
    chunk = _ChunkReader(model, alias, namespace, len(keys), given_up, neighbours or Neighbours(expected=False))
    chunk.read(keys)
    return chunk.outcomes


def deadline_after(seconds: float) -> Callable[[], bool]:
    """Return a ``given_up`` that says so ``seconds`` from now."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end
