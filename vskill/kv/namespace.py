"""The face of the KV layer: one table, seen from one environment."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from django.conf import settings

from vskill.environments import WorkerEnv
from vskill.kv import writer
from vskill.kv.codec import check_key
from vskill.kv.listing import MAX_PAGE, KeyPage, list_keys
from vskill.kv.loader import Source, current_batcher, start_chunk
from vskill.kv.models import AbstractKVEntry
from vskill.kv.outcomes import Outcome, Status
from vskill.kv.probe import probe
from vskill.kv.reader import CHUNK_SIZE, read_chunk
from vskill.kv.threads import readers, writers

DEFAULT_WINDOW: Final = 2000


class KVNamespace:
    """The entries of one table that belong to one environment.

    Any number of ``get()`` may be awaited at once: each settles by itself, and the database sees selects of at most 500 keys, never
    more than ``KV_READ_WORKERS`` of them at a time. To read a whole key space use ``get_many``, whose memory does not grow with it.
    """

    def __init__(self, model: type[AbstractKVEntry], environment: WorkerEnv) -> None:
        self.model = model
        self.environment = environment
        self.alias = environment.database
        self.name = environment.name
        self._source: Source = (model, self.alias, self.name)

    def __repr__(self) -> str:
        return f"<KVNamespace {self.model.__name__} of {self.name!r}>"

    async def get(self, key: str, *, timeout: float | None = None) -> Outcome:
        """Return the outcome of one key; after ``timeout`` seconds (default ``KV_READ_TIMEOUT``) it is ``TIMED_OUT``."""
        check_key(key)
        limit = settings.KV_READ_TIMEOUT if timeout is None else timeout
        with probe.reading():
            try:
                async with asyncio.timeout(limit):
                    # shield: callers of the same turn share one future, and one that gives up must not cancel it for the others.
                    return await asyncio.shield(current_batcher().load(self._source, key))
            except TimeoutError:
                return Outcome(key, Status.TIMED_OUT, detail=f"no answer within {limit:g} s")

    async def get_many(self, keys: Iterable[str], *, window: int = DEFAULT_WINDOW) -> AsyncIterator[Outcome]:
        """Yield the outcome of each key in the order asked, with at most ``window`` keys being read or waiting to be yielded."""
        upcoming = iter(keys)
        started: deque[tuple[list[str], Future[dict[str, Outcome]], ExitStack]] = deque()
        size = max(1, min(CHUNK_SIZE, window))
        try:
            while True:
                while len(started) * size < window and (chunk := [check_key(key) for key in islice(upcoming, size)]):
                    # A read is in flight from here on, and not only once its turn to be waited for has come.
                    counted = ExitStack()
                    counted.enter_context(probe.reading(len(chunk)))
                    started.append((chunk, start_chunk(self._source, chunk), counted))
                if not started:
                    return
                chunk, reading, counted = started.popleft()
                with counted:
                    outcomes = await self._settled(chunk, reading)
                for key in chunk:
                    yield outcomes[key]
        finally:
            for _chunk, reading, counted in started:
                reading.cancel()
                counted.close()

    async def _settled(self, chunk: Sequence[str], reading: Future[dict[str, Outcome]]) -> dict[str, Outcome]:
        limit = settings.KV_READ_TIMEOUT
        try:
            async with asyncio.timeout(limit):
                return await asyncio.wrap_future(reading)
        except TimeoutError:
            return {key: Outcome(key, Status.TIMED_OUT, detail=f"no answer within {limit:g} s") for key in chunk}

    async def put(
        self,
        key: str,
        value: Any,
        *,
        metadata: Mapping[str, Any] | None = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
        expect_version: int | None = None,
    ) -> int:
        """Write one entry and return its new version; see ``put_sync``."""
        return await writers.run(
            self.put_sync, key, value, metadata=metadata, expires_at=expires_at, ttl=ttl, expect_version=expect_version
        )

    async def delete(self, key: str, *, expect_version: int | None = None) -> bool:
        """Delete one entry and return whether there was one."""
        return await writers.run(self.delete_sync, key, expect_version=expect_version)

    async def list(self, prefix: str = "", *, limit: int = MAX_PAGE, cursor: str | None = None) -> KeyPage:
        """Return one page of the keys that start with ``prefix``, in bytewise order."""
        return await readers.run(self.list_sync, prefix, limit=limit, cursor=cursor)

    async def list_all(self, prefix: str = "", *, page: int = MAX_PAGE) -> AsyncIterator[str]:
        """Yield every key that starts with ``prefix``, page by page; more than one page is no special case."""
        cursor: str | None = None
        while True:
            listed = await self.list(prefix, limit=page, cursor=cursor)
            for key in listed.keys:
                yield key.name
            if listed.list_complete:
                return
            cursor = listed.cursor

    async def purge_expired(self) -> int:
        """Delete every entry that has expired and return how many there were."""
        purged = 0
        while count := await writers.run(writer.purge_expired, *self._source):
            purged += count
        return purged

    def get_sync(self, key: str) -> Outcome:
        """Return the outcome of one key, read on the connection of the calling thread: inside its transaction, if it has one."""
        check_key(key)
        return read_chunk(*self._source, [key])[key]

    def put_sync(
        self,
        key: str,
        value: Any,
        *,
        metadata: Mapping[str, Any] | None = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
        expect_version: int | None = None,
    ) -> int:
        """Write one entry on the connection of the calling thread and return its new version.

        ``expect_version`` makes it a compare-and-set: 0 where nothing may be there, the version that was read otherwise. Raises
        ``VersionConflict`` with nothing written.
        """
        return writer.put(
            *self._source, key, value, metadata=metadata, expires_at=expires_at, ttl=ttl, expect_version=expect_version
        )

    def delete_sync(self, key: str, *, expect_version: int | None = None) -> bool:
        """Delete one entry on the connection of the calling thread and return whether there was one."""
        return writer.delete(*self._source, key, expect_version=expect_version)

    def list_sync(self, prefix: str = "", *, limit: int = MAX_PAGE, cursor: str | None = None) -> KeyPage:
        """Return one page of keys, read on the connection of the calling thread."""
        return list_keys(*self._source, prefix=prefix, limit=limit, cursor=cursor)
