"""What psycopg's pool is told, so that it works again at once when its database does."""

from __future__ import annotations

import select
from typing import Any, Final

import psycopg
from psycopg_pool import ConnectionPool

# The pool waits twice as long after each attempt, up to this; by itself it would after 5 minutes be away for as long.
RECONNECT_SECONDS: Final = 1.0


def is_broken(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the server has ended a connection that lay idle.

    It costs no round trip while the connection is quiet: a server that ends one says so, or its end closes the socket.
    """
    try:
        waiting = select.poll()
        waiting.register(connection.fileno(), select.POLLIN)
        if waiting.poll(0):
            # It may be a notice and not the end; the server knows.
            ConnectionPool.check_connection(connection)
    except psycopg.Error:
        return True
    return False


def connect_again(pool: ConnectionPool[Any]) -> None:
    """Let a pool that has given up a connection try again where somebody waits for one: ``reconnect_failed``.

    By itself it tries when the next one asks, and those who wait already would wait in vain.
    """
    if pool.get_stats()["requests_waiting"]:
        # It checks those that lie idle, of which there are none while somebody waits, and lets the pool grow.
        pool.check()
