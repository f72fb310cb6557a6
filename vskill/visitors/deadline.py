"""End the statements of one piece of work in the database: at a deadline, or once nobody waits for them.

On SQLite, the handler that the library calls while a statement runs stops it, so no other statement of the connection
can be hit. On PostgreSQL, ``statement_timeout`` does, even if this process hangs; for a visitor who left, a cancel
request is sent while the thread cannot begin another statement.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from django.db import DatabaseError, connections

from vskill.environments import databases_in_use
from vskill.kv.errors import EntryUnavailable
from vskill.kv.threads import DatabaseThreads
from vskill.visitors.errors import TooSlow, VisitorLeft

# Instructions of SQLite's virtual machine between two calls of its handler: about a tenth of a millisecond.
_INSTRUCTIONS: Final = 10_000
# SQLSTATE of a statement that statement_timeout or a cancel request ended.
_CANCELLED: Final = "57014"

# A cancel request opens a connection to the server, for which an event loop must not wait.
_cancellers: Final = DatabaseThreads("visitor-cancel", lambda: 2)


class StatementDeadline:
    """The time that the statements of one piece of work have, from when the work begins.

    ``seconds`` is how long they may take together, with the work between them. ``leave()`` ends them earlier.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = float("inf")
        self._left = False
        # Guards the two below: a cancel request ends whatever the connection executes.
        self._changed = threading.Condition()
        self._executing: Any = None

    def leave(self) -> None:
        """End the work because nobody waits for it: its running statement, and each before it begins.

        Call it on any thread; it does not wait for the database.
        """
        with self._changed:
            self._left = True
            executing = self._executing is not None
        if executing:
            _cancellers.submit_shared(self._cancel)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the statements of this thread to the deadline while the body runs.

        Raises ``TooSlow`` where the deadline ended one, and ``VisitorLeft`` after ``leave``.
        """
        used = [connections[alias] for alias in databases_in_use()]
        self._until = time.monotonic() + self._seconds
        try:
            with ExitStack() as stack:
                for connection in used:
                    stack.enter_context(connection.execute_wrapper(self._execute))
                yield
        except (DatabaseError, EntryUnavailable) as error:
            # An entry counts as unreadable where its statement was ended.
            self._refuse_after_end(error)
            if getattr(error.__cause__, "sqlstate", "") == _CANCELLED:
                raise TooSlow from error
            raise
        finally:
            for connection in used:
                if connection.vendor == "sqlite" and connection.connection is not None:
                    connection.connection.set_progress_handler(None, 0)

    def _over(self) -> bool:
        return self._left or time.monotonic() >= self._until

    def _refuse_after_end(self, cause: BaseException | None = None) -> None:
        if self._left:
            raise VisitorLeft("The visitor hung up.") from cause
        if self._over():
            raise TooSlow from cause

    def _execute(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:
        self._refuse_after_end()
        connection = context["connection"]
        if connection.vendor == "sqlite":
            # Set each time, because the connection may be a new one. It stays for the rows that are fetched later.
            connection.connection.set_progress_handler(self._over, _INSTRUCTIONS)
            return execute(sql, params, many, context)
        with self._shown(connection.connection):
            connection.limit_statements(self._until - time.monotonic())
            self._refuse_after_end()
            return execute(sql, params, many, context)

    @contextmanager
    def _shown(self, executing: Any) -> Iterator[None]:
        with self._changed:
            self._refuse_after_end()
            self._executing = executing
        try:
            yield
        finally:
            with self._changed:
                self._executing = None
                self._changed.notify_all()

    def _cancel(self) -> None:
        # The driver takes longer to load than the rest of a command that runs on SQLite.
        from vskill.postgresql.base import cancel_running  # noqa: PLC0415 - for this database only

        with self._changed:
            while self._executing is not None:
                # The lock is held meanwhile: the thread can begin no statement that the request was not meant for.
                cancel_running(self._executing)
                # Repeated, because a request that arrives before the statement does is ignored.
                self._changed.wait(0.1)
