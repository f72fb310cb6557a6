"""Django's PostgreSQL backend with checked connections of a pool, limits of statements, and statements planned once.

Times are read by the parser of the interpreter: a page of a list has a hundred of them.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from django.db.backends.postgresql import base
from django.db.backends.postgresql.operations import DatabaseOperations
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap
from psycopg.types.datetime import TimestamptzLoader

from vskill.postgresql.pool import is_broken

# Seconds. A statement that no cancel request reaches for longer than this is ended by its limit.
CANCEL_SECONDS: Final = 2.0
_PLAIN_PLANS: Final = "SET max_parallel_workers_per_gather TO 0; SET jit TO off"

logger = logging.getLogger(__name__)


class _TimeLoader(TimestamptzLoader):
    """What makes a time of the text of one, in a tenth of the driver's time."""

    # Django looks whether this is the time zone of the connection.
    timezone = UTC

    def load(self, data: Buffer) -> datetime:
        """Return the time; raise ``DataError`` for one that Python has no type for."""
        try:
            return datetime.fromisoformat(bytes(data).decode())
        except ValueError:
            return super().load(data)


class _PreparedCursor(psycopg.Cursor[Any]):
    """A cursor whose statements the server parses once for each connection, and soon plans once."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        """Execute a statement, with its values beside it and not in its text."""
        prepared = {**options, "prepare": True}
        try:
            return super().execute(query, params, **prepared)
        except psycopg.errors.FeatureNotSupported:
            # A migration has given a column another type since, as it may while this release runs. After a transaction
            # that is rolled back the driver forgets what is prepared by itself.
            if self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                raise
            self.connection.execute("DEALLOCATE ALL")
            return super().execute(query, params, **prepared)


class _Operations(DatabaseOperations):
    """Django's operations, which know what a prepared cursor has executed as well."""

    def last_executed_query(self, cursor: Any, sql: Any, params: Any) -> str:
        """Return the last statement of a cursor with its values, for the log of statements."""
        if isinstance(cursor, _PreparedCursor):
            return str(self.compose_sql(sql, params))
        found: str = super().last_executed_query(cursor, sql, params)
        return found


class DatabaseWrapper(base.DatabaseWrapper):
    """Take only connections from the pool that the server has not closed, and give them back without a limit.

    A server that restarts closes the idle connections of the pool, and each of them would fail the next query on it.
    Django's own ``CONN_HEALTH_CHECKS`` costs a round trip each time, and the pool then waits 1, 2, 4, 8 s between one
    broken connection and the next: with six of them, longer than any request waits.
    """

    ops_class = _Operations
    # ``statement_timeout`` of the session in milliseconds as far as it is known, and whether it was ever set.
    _limit = 0
    _limited = False

    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection[Any]:
        """Return a working connection; a broken one goes back to the pool, which opens another in its place."""
        self._limit, self._limited = 0, False
        connection: psycopg.Connection[Any] = super().get_new_connection(conn_params)
        pool = self.pool
        if pool is None:
            return connection
        for _ in range(pool.max_size):
            if not is_broken(connection):
                break
            # Closed first: the pool keeps a connection whose own state does not show yet that it is broken.
            connection.close()
            pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection

    def _configure_connection(self, connection: psycopg.Connection[Any]) -> bool:
        # A page reads few rows. To start processes for it, or to compile it, takes longer than the statement, and keeps
        # the cores from the pages of others.
        connection.execute(_PLAIN_PLANS)
        super()._configure_connection(connection)  # type: ignore[misc]  # the stubs leave it out
        return True

    def get_connection_params(self) -> dict[str, Any]:
        """Return the parameters of a connection, which prepares the statements of ``prepared_cursor`` and no others."""
        parameters: dict[str, Any] = super().get_connection_params()
        adapters = AdaptersMap(parameters["context"])
        adapters.register_loader("timestamptz", _TimeLoader)
        return {**parameters, "context": adapters, "prepare_threshold": 0}

    def prepared_cursor(self) -> Any:
        """Return a cursor for statements whose text is always the same and whose best plan hangs on no value."""
        self.ensure_connection()
        connection: psycopg.Connection[Any] = self.connection
        usual, connection.cursor_factory = connection.cursor_factory, _PreparedCursor
        try:
            return self.cursor()
        finally:
            connection.cursor_factory = usual

    def limit_statements(self, seconds: float) -> None:
        """Have the server end the next statement after ``seconds``, or up to a quarter later.

        The limit is one of the session, so that it takes a round trip only when it changes by much.
        """
        wanted = max(1, int(seconds * 1000))
        if 3 * wanted <= 4 * self._limit <= 5 * wanted:
            return
        connection: psycopg.Connection[Any] = self.connection
        self._limited = True
        with self.wrap_database_errors:
            connection.execute("SELECT set_config('statement_timeout', %s, false)", [str(wanted)])
        # A transaction that is rolled back takes its settings along, so such a limit is not relied on.
        self._limit = 0 if self.in_atomic_block else wanted

    def _close(self) -> None:
        # The pool hands the connection to anybody next.
        if self._limited and self.connection is not None and self.pool is not None:
            _unlimit(self.connection)
        super()._close()  # type: ignore[misc]  # the stubs leave it out


def _unlimit(connection: psycopg.Connection[Any]) -> None:
    try:
        if not connection.closed:
            connection.rollback()
            connection.execute("RESET statement_timeout")
            connection.commit()
    except psycopg.Error:
        # The pool opens another in place of one that is closed.
        connection.close()


def cancel_running(connection: psycopg.Connection[Any]) -> None:
    """Ask the server to cancel what ``connection`` executes; one that is idle stays as it is.

    Call it while no other statement can begin on the connection. An error is logged: the limit still ends it.
    """
    try:
        connection.cancel_safe(timeout=CANCEL_SECONDS)
    except psycopg.Error as error:
        logger.warning("a statement that nobody waits for could not be cancelled: %s", error)
