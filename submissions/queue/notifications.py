"""Learn of new messages when they are committed, instead of at the next poll.

PostgreSQL notifies its listeners at the commit of a message. SQLite cannot, but says within microseconds whether
another connection has committed anything. Consumers poll as well, so a notification that is lost costs time only.
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

# How often SQLite is asked, and how long a listener that lost its connection waits before it opens another.
LOOK_SECONDS: Final = 0.05
RECONNECT_SECONDS: Final = 5.0


async def watch(alias: str, arrived: asyncio.Event) -> NoReturn:
    """Set ``arrived`` whenever there may be a new message in the database ``alias``, until cancelled."""
    connection = connections[alias]
    wait_for_commits = _listen if connection.vendor == "postgresql" else _look
    while True:
        try:
            await wait_for_commits(connection, arrived)
        except Exception as error:  # noqa: BLE001 - whatever it is, the consumer polls
            logger.info("new messages in %s are found by polling alone for now: %s", alias, error)
        await asyncio.sleep(RECONNECT_SECONDS)


async def _listen(connection: BaseDatabaseWrapper, arrived: asyncio.Event) -> None:
    """Set ``arrived`` at each notification, until the connection ends."""
    import psycopg  # noqa: PLC0415 - loaded for its own database alone

    parameters: dict[str, Any] = connection.get_connection_params()
    # Django's own classes work with synchronous connections only.
    for name in ("cursor_factory", "context"):
        parameters.pop(name, None)
    async with await psycopg.AsyncConnection.connect(**parameters, autocommit=True) as listening:
        await listening.execute(f"LISTEN {CHANNEL}")
        # For messages that came before the LISTEN.
        arrived.set()
        async for _notification in listening.notifies():
            arrived.set()


async def _look(connection: BaseDatabaseWrapper, arrived: asyncio.Event) -> NoReturn:
    """Set ``arrived`` whenever another connection has committed since the last look."""
    address = f"{Path(connection.settings_dict['NAME']).absolute().as_uri()}?mode=ro"  # noqa: ASYNC240 - reads no file
    with contextlib.closing(sqlite3.connect(address, uri=True, timeout=0)) as looking:
        seen = None
        while True:
            # SQLite reports busy while it recovers from a crash; the next look sees what was committed.
            with contextlib.suppress(sqlite3.OperationalError):
                (version,) = looking.execute("PRAGMA data_version").fetchone()
                if version != seen:
                    seen = version
                    arrived.set()
            await asyncio.sleep(LOOK_SECONDS)
