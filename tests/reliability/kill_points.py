"""Kill this process with SIGKILL at a named point: before or after a write becomes durable, or once a child runs.

A point is ``before:NAME:N`` or ``after:NAME:N``: the N-th time (from 1) that NAME is written. Read from the variable
``TEST_KILL_AT`` by ``install``, which the roles of the reliability tests call; the product knows nothing of it.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

VARIABLE: Final = "TEST_KILL_AT"
# What a statement writes, by words that stand in it; the first that fits.
_STATEMENTS: Final[Sequence[tuple[str, str]]] = (
    ("WITH next AS", "claim"),
    ('DELETE FROM "submissions_queuemessage"', "acknowledge"),
    ('INSERT INTO "submissions_queuemessage"', "message"),
    ('INSERT INTO "submissions_submissionentry"', "entry"),
    # Before the history: on PostgreSQL one statement may write both.
    ('UPDATE "submissions_submissionentry"', "move"),
    ('INSERT INTO "submissions_submissiontransition"', "history"),
    ('INSERT INTO "marketplace_skillversion"', "version"),
    ('INSERT INTO "kv_kventry"', "kv"),
)
# Of the KV entries only evidence is a step of the pipeline; signs of life come by the clock.
_EVIDENCE: Final = "scan:"


class KillPoints:
    """Count what is written, and end the process where the point is."""

    def __init__(self, point: str, kill: Callable[[], None]) -> None:
        self._when, self._name, number = point.split(":")
        self._number = int(number)
        self._kill = kill
        self._seen: Counter[str] = Counter()
        self._in_transaction: set[str] = set()

    def reached(self, when: str, name: str) -> None:
        """Say that something is about to happen, or has happened."""
        if when == "before":
            self._seen[name] += 1
        if (when, name, self._seen[name]) == (self._when, self._name, self._number):
            self._kill()

    def execute(self, run: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        """Stand around each statement."""
        name = _named(sql, params)
        if not name:
            return run(sql, params, many, context)
        # Outside a transaction the end of a statement is its commit.
        in_transaction = context["connection"].in_atomic_block
        names = [name] if in_transaction else [name, f"commit-{name}"]
        for one in names:
            self.reached("before", one)
        result = run(sql, params, many, context)
        for one in names:
            self.reached("after", one)
        if in_transaction:
            self._in_transaction.add(name)
        return result

    def commit(self, commit: Callable[[], None]) -> None:
        """Stand around the end of each transaction; it is named for the gravest of what it wrote."""
        written = [name for name in ("version", "message", "move", "entry") if name in self._in_transaction]
        self._in_transaction.clear()
        if not written:
            commit()
            return
        name = f"commit-{written[0]}"
        self.reached("before", name)
        commit()
        self.reached("after", name)


def _named(sql: str, params: Any) -> str:
    for words, name in _STATEMENTS:
        if words in sql:
            if name == "kv":
                evidence = any(isinstance(part, str) and part.startswith(_EVIDENCE) for part in params or ())
                return "evidence" if evidence else ""
            return name
    return ""


def kill_this_process() -> None:
    """End at once, as a machine does that loses its power."""
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def install(point: str | None = None) -> None:
    """Watch every connection from now on, where a point is given here or by the variable."""
    point = point or os.environ.get(VARIABLE)
    if not point:
        return
    points = KillPoints(point, kill_this_process)

    def watch(connection: BaseDatabaseWrapper, **_kwargs: Any) -> None:
        # A thread keeps the object and connects it anew; watched twice, it would count twice.
        if points.execute not in connection.execute_wrappers:
            connection.execute_wrappers.append(points.execute)

    connection_created.connect(watch, weak=False)
    for connection in connections.all(initialized_only=True):
        connection.close()
    commit = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]  # where every commit of Django passes

    def watched(self: BaseDatabaseWrapper) -> None:
        points.commit(lambda: commit(self))

    BaseDatabaseWrapper._commit = watched  # type: ignore[attr-defined]
