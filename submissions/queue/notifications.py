"""Hear of new messages at once, instead of at the next poll.

PostgreSQL notifies whoever listens when the transaction of a message is committed. SQLite has no such thing, but tells
at the price of some microseconds whether anybody else has committed anything. Neither is relied upon: a consumer polls
all the same, less often, and nothing is lost when a notice is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from pathlib import Path
from typing import Any, Final, NoReturn

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from submissions.queue.statements import CHANNEL

logger = logging.getLogger(__name__)

# How often SQLite is asked, and how long a listener that lost its connection waits before it makes another.
LOOK_SECONDS: Final = 0.05
RECONNECT_SECONDS: Final = 5.0


async def watch(alias: str, news: asyncio.Event) -> NoReturn:
    """Set ``news`` whenever there may be something new in a database, until cancelled."""
    connection = connections[alias]
    told = _listen if connection.vendor == "postgresql" else _look
    while True:
        try:
            await told(connection, news)
        except Exception as error:  # noqa: BLE001 - whatever it is, the consumer polls
            logger.info("new messages in %s are found by polling alone for now: %s", alias, error)
        await asyncio.sleep(RECONNECT_SECONDS)


async def _listen(connection: BaseDatabaseWrapper, news: asyncio.Event) -> None:
    """Set ``news`` at each notice, until the connection ends."""
    import psycopg  # noqa: PLC0415 - loaded for its own database alone

    parameters: dict[str, Any] = connection.get_connection_params()
    # Django's own classes are for connections that are not asynchronous.
    for name in ("cursor_factory", "context"):
        parameters.pop(name, None)
    async with await psycopg.AsyncConnection.connect(**parameters, autocommit=True) as listening:
        await listening.execute(f"LISTEN {CHANNEL}")
        # For what came before we listened.
        news.set()
        async for _notice in listening.notifies():
            news.set()


async def _look(connection: BaseDatabaseWrapper, news: asyncio.Event) -> NoReturn:
    """Set ``news`` whenever another connection has committed since the last look."""
    address = f"{Path(connection.settings_dict['NAME']).absolute().as_uri()}?mode=ro"  # noqa: ASYNC240 - reads no file
    with contextlib.closing(sqlite3.connect(address, uri=True, timeout=0)) as looking:
        seen = None
        while True:
            # It says busy while the database recovers from a crash; then somebody will have something to write.
            with contextlib.suppress(sqlite3.OperationalError):
                (version,) = looking.execute("PRAGMA data_version").fetchone()
                if version != seen:
                    seen = version
                    news.set()
            await asyncio.sleep(LOOK_SECONDS)
