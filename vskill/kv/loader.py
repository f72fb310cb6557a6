"""Join the reads of one turn of the event loop into chunks.

Each caller of ``get()`` awaits its own key and settles by itself; what reaches the database is one select for up to 500 of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from itertools import islice
from weakref import WeakKeyDictionary

from vskill.kv.models import AbstractKVEntry
from vskill.kv.outcomes import Outcome, Status
from vskill.kv.reader import CHUNK_SIZE, read_chunk
from vskill.kv.threads import readers

Source = tuple[type[AbstractKVEntry], str, str]
"""A table, the alias of its database, and the namespace within it."""


def start_chunk(source: Source, keys: Sequence[str]) -> Future[dict[str, Outcome]]:
    """Start the read of one chunk on a thread of the pool."""
    return readers.submit_shared(partial(read_chunk, *source, keys))


class ReadBatcher:
    """The reads of one event loop that have been asked for in this turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[Source, dict[str, asyncio.Future[Outcome]]] = {}

    def load(self, source: Source, key: str) -> asyncio.Future[Outcome]:
        """Return the future of one key; callers that ask for the same key in the same turn share one."""
        waiting = self._waiting.get(source)
        if waiting is None:
            waiting = self._waiting[source] = {}
            self._loop.call_soon(self._start, source)
        future = waiting.get(key)
        if future is None:
            future = waiting[key] = self._loop.create_future()
        return future

    def _start(self, source: Source) -> None:
        waiting = self._waiting.pop(source)
        keys = iter(waiting)
        while chunk := list(islice(keys, CHUNK_SIZE)):
            reading = asyncio.wrap_future(start_chunk(source, chunk), loop=self._loop)
            reading.add_done_callback(partial(_settle, {key: waiting[key] for key in chunk}))


def _settle(waiting: dict[str, asyncio.Future[Outcome]], reading: asyncio.Future[dict[str, Outcome]]) -> None:
    if reading.cancelled():
        outcomes, reason = {}, "the read was cancelled"
    elif (error := reading.exception()) is not None:
        outcomes, reason = {}, str(error) or type(error).__name__
    else:
        outcomes, reason = reading.result(), ""
    for key, future in waiting.items():
        if not future.done():
            future.set_result(outcomes.get(key) or Outcome(key, Status.UNREADABLE, detail=reason))


_batchers: WeakKeyDictionary[asyncio.AbstractEventLoop, ReadBatcher] = WeakKeyDictionary()


def current_batcher() -> ReadBatcher:
    """Return the batcher of the running event loop."""
    loop = asyncio.get_running_loop()
    batcher = _batchers.get(loop)
    if batcher is None:
        batcher = _batchers[loop] = ReadBatcher(loop)
    return batcher
