"""Kill this process with SIGKILL at a named point, before or after a write or a commit.

A point is ``before:NAME:N`` or ``after:NAME:N``, for the N-th write (from 1) of NAME. ``install`` takes it as an
argument or from the variable ``TEST_KILL_AT``. The roles of the reliability tests call it; the product does not know
of it.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

VARIABLE: Final = "TEST_KILL_AT"
# The name of a write, by words of its statement; the first match counts.
_STATEMENTS: Final[Sequence[tuple[str, str]]] = (
    ("WITH next AS", "claim"),
    ('DELETE FROM "submissions_queuemessage"', "acknowledge"),
    ('INSERT INTO "submissions_queuemessage"', "message"),
    ('INSERT INTO "submissions_submissionentry"', "entry"),
    (' INTO "submissions_uploadedbundle"', "bundle"),
    (' INTO "submissions_stagedfile"', "staged"),
    # Before the history: on PostgreSQL one statement may write both.
    ('UPDATE "submissions_submissionentry"', "move"),
    ('INSERT INTO "submissions_submissiontransition"', "history"),
    ('INSERT INTO "marketplace_skillversion"', "version"),
    ('INSERT INTO "marketplace_laterscan"', "later"),
    ('INSERT INTO "marketplace_skillflag"', "flag"),
    ('INSERT INTO "marketplace_signingkey"', "key"),
    (' INTO "marketplace_versionsignature"', "signature"),
    ('INSERT INTO "marketplace_logleaf"', "leaf"),
    ('INSERT INTO "marketplace_lognode"', "node"),
    ('DELETE FROM "marketplace_logpending"', "unpend"),
    ('UPDATE "marketplace_logstate"', "grow"),
    ('INSERT INTO "marketplace_treehead"', "head"),
    ('INSERT INTO "kv_kventry"', "kv"),
)
# Among KV entries, only evidence is a step of the pipeline; heartbeats come at arbitrary times.
_EVIDENCE: Final = "scan:"


class KillPoints:
    """Count the writes, and kill the process at the chosen point."""

    def __init__(self, point: str, kill: Callable[[], None]) -> None:
        """Call ``kill`` at ``point``, which is ``before:NAME:N`` or ``after:NAME:N``."""
        self._when, self._name, number = point.split(":")
        self._number = int(number)
        self._kill = kill
        self._seen: Counter[str] = Counter()
        self._in_transaction: set[str] = set()

    def reached(self, when: str, name: str) -> None:
        """Note that the write ``name`` is about to happen (``when`` is before), or has happened (after)."""
        if when == "before":
            self._seen[name] += 1
        if (when, name, self._seen[name]) == (self._when, self._name, self._number):
            self._kill()

    def execute(self, run: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        """Run a statement and check the points around it.

        ``run``, ``sql``, ``params``, ``many`` and ``context`` are those of Django's ``execute_wrappers``.
        """
        name = _named(sql, params)
        if not name:
            return run(sql, params, many, context)
        # Outside a transaction, a statement commits itself.
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
        """Commit a transaction and check the points around it, which are named for its most important write."""
        named = ("version", "later", "message", "move", "entry", "signature", "grow", "key")
        written = [name for name in named if name in self._in_transaction]
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
                parts = params.values() if isinstance(params, Mapping) else params or ()
                evidence = any(isinstance(part, str) and part.startswith(_EVIDENCE) for part in parts)
                return "evidence" if evidence else ""
            return name
    return ""


def kill_this_process() -> None:
    """Kill this process at once, as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def install(point: str | None = None) -> None:
    """Watch all connections from now on, if a point is given here or in the variable."""
    point = point or os.environ.get(VARIABLE)
    if not point:
        return
    points = KillPoints(point, kill_this_process)

    def watch(connection: BaseDatabaseWrapper, **_kwargs: Any) -> None:
        # A thread reconnects the same object, and two wrappers would count each write twice.
        if points.execute not in connection.execute_wrappers:
            connection.execute_wrappers.append(points.execute)

    connection_created.connect(watch, weak=False)
    for connection in connections.all(initialized_only=True):
        connection.close()
    commit = BaseDatabaseWrapper._commit  # type: ignore[attr-defined]  # every commit of Django calls it

    def watched(self: BaseDatabaseWrapper) -> None:
        points.commit(lambda: commit(self))

    BaseDatabaseWrapper._commit = watched  # type: ignore[attr-defined]
