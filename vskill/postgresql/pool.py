"""Settings of psycopg's pool by which it works again as soon as its database does."""

from __future__ import annotations

import select
from typing import Any, Final

import psycopg
from psycopg_pool import ConnectionPool

# The pool doubles the wait after each failed attempt, up to this. The default of 5 minutes would let it stay down for
# as long again after an outage of 5 minutes.
RECONNECT_SECONDS: Final = 1.0


def is_broken(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the server has closed an idle connection.

    This takes no round trip while nothing has arrived on the connection: a server that closes one sends a message or
    closes the socket.
    """
    try:
        waiting = select.poll()
        waiting.register(connection.fileno(), select.POLLIN)
        if waiting.poll(0):
            # It may be only a notice, so the server is asked.
            ConnectionPool.check_connection(connection)
    except psycopg.Error:
        return True
    return False


def connect_again(pool: ConnectionPool[Any]) -> None:
    """Make a pool that gave up on a connection try again where a client waits for one (``reconnect_failed``).

    By itself the pool tries again only at the next request, and clients that already wait would time out.
    """
    if pool.get_stats()["requests_waiting"]:
        # This checks the idle connections, of which there are none while a client waits, and makes the pool grow.
        pool.check()
