"""Read keys in chunks, so that a bad row makes no other row unreadable.

A chunk is one select. When it fails, the chunk is halved until the unreadable rows are isolated: of twenty thousand
rows with two bad ones, only these two are not read. Halving has a budget, and a database that does not answer is one
failure and not five hundred.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from threading import Lock
from typing import Any, Final

from django.db import DatabaseError, InterfaceError, connections, transaction

from vskill.kv.bulk_read import read_bulk
from vskill.kv.models import AbstractKVEntry
from vskill.kv.outcomes import Outcome, Row, Status, decode_row
from vskill.kv.probe import probe
from vskill.kv.statements import statements

CHUNK_SIZE: Final = 500
LONGEST_REASON: Final = 200
RECONNECTIONS: Final = 5
# What a select raises because of the database, its driver or the text of a row; any other error is a bug in this code.
READ_FAILURES: Final = (DatabaseError, InterfaceError, UnicodeDecodeError)
# A key that no entry has: a select of it reads no row, so that its failure is not caused by one.
NO_KEY: Final = ""
# Decoding needs the interpreter, which runs one thread at a time. Waiting here is cheaper than competing for it.
decode_lock: Final = Lock()

logger = logging.getLogger(__name__)


def reason_of(error: BaseException) -> str:
    """Return the first line of an error's message, cut to ``LONGEST_REASON`` characters, or the name of its type."""
    lines = str(error).strip().splitlines()
    return lines[0][:LONGEST_REASON] if lines else type(error).__name__


class _ChunkReader:
    """The read of one chunk; ``outcomes`` has the outcome of each key afterwards."""

    def __init__(
        self,
        model: type[AbstractKVEntry],
        alias: str,
        namespace: str,
        budget: int,
        given_up: Callable[[], bool],
    ) -> None:
        self._connection = connections[alias]
        self._statements = statements(model, self._connection.vendor)
        self._namespace = namespace
        # As many selects as there are keys. Isolating one bad row of 500 takes 18, isolating fifty about 430.
        self._budget = budget
        self._given_up = given_up
        self._reconnections = RECONNECTIONS
        self._answers = False
        self._away = ""
        self.outcomes: dict[str, Outcome] = {}

    def read(self, keys: Sequence[str]) -> None:
        if not keys:
            return
        if self._given_up():
            self._settle(keys, Status.TIMED_OUT, "nobody waits for it any more")
            return
        if self._away:
            self._settle(keys, Status.UNREADABLE, self._away)
            return
        try:
            rows = read_bulk(self._ask, self._statements, self._namespace, keys)
            if rows is None:
                rows = self._select(keys)
        except READ_FAILURES as error:
            self._after_failure(keys, error)
            return
        with decode_lock:
            found = [decode_row(row) for row in rows]
        outcomes = self.outcomes
        for outcome in found:
            outcomes[outcome.key] = outcome
        if len(found) < len(keys):
            for key in keys:
                if key not in outcomes:
                    outcomes[key] = Outcome(key, Status.MISSING)

    def _ask(self, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        # A savepoint, so that a select that fails does not abort a transaction of the caller.
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
        if self._connection_was_lost():
            self.read(keys)
        elif not self._a_row_is_to_blame():
            # Remembered, because the rest of the chunk would fail in the same way.
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
        """Return whether the connection broke and could be replaced, which a chunk may do ``RECONNECTIONS`` times."""
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
) -> dict[str, Outcome]:
    """Return the outcome of each of at most ``CHUNK_SIZE`` keys, read on the connection of the calling thread.

    ``model`` is the table, ``alias`` its database, ``namespace`` the name of the environment. A row or a database that
    cannot be read raises nothing: its keys are ``UNREADABLE``, with the reason in ``detail``. ``given_up`` is called
    before each select; once it returns true, the remaining keys are ``TIMED_OUT``.
    """
    chunk = _ChunkReader(model, alias, namespace, len(keys), given_up)
    chunk.read(keys)
    return chunk.outcomes


def deadline_after(seconds: float) -> Callable[[], bool]:
    """Return a function that returns true from ``seconds`` after this call on, for ``given_up``."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end
