"""Django's PostgreSQL backend, with a look at each connection that comes from the pool."""

from __future__ import annotations

from typing import Any

import psycopg
from django.db.backends.postgresql import base

from vskill.postgresql.pool import is_broken


class DatabaseWrapper(base.DatabaseWrapper):
    """Take from the pool a connection that its server still holds.

    A server that was started anew ends those that lie idle in the pool; each of them would fail whoever takes it.
    Django's own ``CONN_HEALTH_CHECKS`` asks the server at each turn, and the pool then waits 1, 2, 4, 8 s between one
    broken connection and the next: six of them take more time than anybody waits.
    """

    def get_new_connection(self, conn_params: dict[str, Any]) -> psycopg.Connection[Any]:
        """Return a connection; one that was found broken goes back, and the pool makes another in its place."""
        connection: psycopg.Connection[Any] = super().get_new_connection(conn_params)
        pool = self.pool
        if pool is None:
            return connection
        for _ in range(pool.max_size):
            if not is_broken(connection):
                break
            # Closed first, because the pool keeps what does not know yet that it is broken.
            connection.close()
            pool.putconn(connection)
            connection = super().get_new_connection(conn_params)
        return connection
