"""Django's PostgreSQL backend, which checks each connection that it takes from the pool."""

from __future__ import annotations

from typing import Any

import psycopg
from django.db.backends.postgresql import base

from vskill.postgresql.pool import is_broken


class DatabaseWrapper(base.DatabaseWrapper):
    """Take only connections from the pool that the server has not closed.

    A server that restarts closes the idle connections of the pool, and each of them would fail the next query on it.
    Django's own ``CONN_HEALTH_CHECKS`` costs a round trip each time, and the pool then waits 1, 2, 4, 8 s between one
    broken connection and the next: with six of them, longer than any request waits.
    """

    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection[Any]:
        """Return a working connection; a broken one goes back to the pool, which opens another in its place."""
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
