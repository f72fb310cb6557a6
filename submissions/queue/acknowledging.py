"""Acknowledge messages together: while the database works on some, those that end meanwhile wait for the next turn.

Each caller awaits its own message. Under load one statement and one commit serve many of them; a single message waits
for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from submissions.queue.base import Message
from vskill.kv.threads import writers

# Of one statement; two parameters each, and SQLite takes 32,766.
MOST_AT_ONCE: Final = 500

Delete = Callable[[Sequence[Message]], set[int]]


class Acknowledger:
    """The messages of one event loop and one database that are done and still stand in the table."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Message, asyncio.Future[bool]]] = []
        self._working = False

    def add(self, message: Message, delete: Delete) -> asyncio.Future[bool]:
        """Return a future that says whether ``message`` was still held and is deleted; ``delete`` does it for many."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        self._waiting.append((message, future))
        if not self._working:
            self._working = True
            # Messages that end in the same turn go together.
            loop.call_soon(self._start, loop, delete)
        return future

    def _start(self, loop: asyncio.AbstractEventLoop, delete: Delete) -> None:
        batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
        if not batch:
            self._working = False
            return
        # Shared, because it belongs to the environment of none of those who wait.
        working = writers.submit_shared(partial(delete, [message for message, _future in batch]))
        asyncio.wrap_future(working, loop=loop).add_done_callback(partial(self._settle, loop, delete, batch))

    def _settle(
        self,
        loop: asyncio.AbstractEventLoop,
        delete: Delete,
        batch: list[tuple[Message, asyncio.Future[bool]]],
        working: asyncio.Future[set[int]],
    ) -> None:
        error = working.exception()
        for message, future in batch:
            if future.done():
                continue
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(message.id in working.result())
        self._start(loop, delete)


_acknowledgers: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Acknowledger]] = WeakKeyDictionary()


def acknowledger(alias: str) -> Acknowledger:
    """Return the acknowledger of the running event loop for the database ``alias``."""
    by_alias = _acknowledgers.setdefault(asyncio.get_running_loop(), {})
    return by_alias.setdefault(alias, Acknowledger())
