"""The face of the KV layer: one table, seen from one environment."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from django.conf import settings

from vskill.environments import WorkerEnv
from vskill.kv import writer
from vskill.kv.codec import check_key
from vskill.kv.listing import MAX_PAGE, KeyPage, list_keys, list_names
from vskill.kv.loader import Source, current_batcher, start_chunk, timed_out
from vskill.kv.models import AbstractKVEntry
from vskill.kv.outcomes import Outcome
from vskill.kv.probe import probe
from vskill.kv.reader import CHUNK_SIZE, deadline_after, read_chunk
from vskill.kv.threads import readers, writers
from vskill.worker_context import refuse_closed_scope

DEFAULT_WINDOW: Final = 2000


class KVNamespace:
    """The entries of one table that belong to one environment.

    Any number of ``get()`` may be awaited at once: each settles by itself, and the database sees selects of at most 500
    keys, never more than ``KV_READ_WORKERS`` of them at a time. To read a whole key space use
    ``get_many(list_all(prefix))``, whose memory does not grow with it.
    """

    def __init__(self, model: type[AbstractKVEntry], environment: WorkerEnv) -> None:
        self.model = model
        self.environment = environment
        self.alias = environment.database
        self.name = environment.name
        self._source: Source = (model, self.alias, self.name)

    def __repr__(self) -> str:
        return f"<KVNamespace {self.model.__name__} of {self.name!r}>"

    async def get(self, key: str, *, timeout: float | None = None) -> Outcome:  # noqa: ASYNC109 - a timeout is an outcome here
        """Return the outcome of one key.

        It is ``TIMED_OUT`` after ``KV_READ_TIMEOUT`` seconds, or after ``timeout`` where that is sooner.
        """
        check_key(key)
        refuse_closed_scope()
        future = current_batcher().load(self._source, key)
        if timeout is None:
            return await future
        try:
            async with asyncio.timeout(timeout):
                return await future
        except TimeoutError:
            return timed_out(key, timeout)

    async def get_many(
        self, keys: Iterable[str] | AsyncIterable[str], *, window: int = DEFAULT_WINDOW
    ) -> AsyncIterator[Outcome]:
        """Yield the outcome of each key in the order asked.

        At most ``window`` keys are being read or waiting to be yielded, so memory does not grow with their number.
        """
        refuse_closed_scope()
        size = max(1, min(CHUNK_SIZE, window))
        seconds = settings.KV_READ_TIMEOUT
        started: deque[tuple[list[str], Future[dict[str, Outcome]]]] = deque()
        ended = False
        try:
            async with aclosing(_chunks(keys, size)) as chunks:
                while True:
                    while not ended and len(started) < max(1, window // size):
                        chunk = await anext(chunks, None)
                        if chunk is None:
                            ended = True
                        else:
                            started.append((chunk, start_chunk(self._source, chunk, deadline_after(seconds))))
                            probe.begin_reads(len(chunk))
                    if not started:
                        return
                    outcomes = await _settled(*started[0], seconds)
                    probe.end_reads(len(started.popleft()[0]))
                    for outcome in outcomes:
                        yield outcome
        finally:
            for chunk, reading in started:
                reading.cancel()
                probe.end_reads(len(chunk))

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
        """Delete one entry and return whether there was one; see ``delete_sync``."""
        return await writers.run(self.delete_sync, key, expect_version=expect_version)

    async def list(self, prefix: str = "", *, limit: int = MAX_PAGE, cursor: str | None = None) -> KeyPage:
        """Return one page of the keys that start with ``prefix``, in bytewise order."""
        return await readers.run(self.list_sync, prefix, limit=limit, cursor=cursor)

    async def list_all(self, prefix: str = "", *, page: int = MAX_PAGE) -> AsyncIterator[str]:
        """Yield every key that starts with ``prefix``, page by page; more than one page is no special case."""
        limit, after = max(1, min(page, MAX_PAGE)), None
        complete = False
        while not complete:
            names, complete = await readers.run(list_names, *self._source, prefix, after, limit)
            for name in names:
                yield name
            after = names[-1] if names else None

    async def purge_expired(self) -> int:
        """Delete every entry that has expired and return how many there were."""
        purged = 0
        while count := await writers.run(writer.purge_expired, *self._source):
            purged += count
        return purged

    def get_sync(self, key: str) -> Outcome:
        """Return the outcome of one key, read on the connection of the calling thread, inside its transaction."""
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

        ``expect_version`` makes it a compare-and-set: 0 where nothing may be there, the version that was read
        otherwise. Raises ``VersionConflict`` with nothing written.
        """
        return writer.put(
            *self._source, key, value, metadata=metadata, expires_at=expires_at, ttl=ttl, expect_version=expect_version
        )

    def delete_sync(self, key: str, *, expect_version: int | None = None) -> bool:
        """Delete one entry on the connection of the calling thread and return whether there was one.

        A key that is written again after it was deleted or purged starts at version 1: whoever still holds a version of
        the old entry may match the new one. Where that would harm, write what says "gone" instead of deleting.
        """
        return writer.delete(*self._source, key, expect_version=expect_version)

    def list_sync(self, prefix: str = "", *, limit: int = MAX_PAGE, cursor: str | None = None) -> KeyPage:
        """Return one page of keys, read on the connection of the calling thread."""
        return list_keys(*self._source, prefix=prefix, limit=limit, cursor=cursor)


async def _chunks(keys: Iterable[str] | AsyncIterable[str], size: int) -> AsyncGenerator[list[str], None]:
    if not isinstance(keys, AsyncIterable):
        upcoming = iter(keys)
        while chunk := [check_key(key) for key in islice(upcoming, size)]:
            yield chunk
        return
    chunk = []
    async for key in keys:
        chunk.append(check_key(key))
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


async def _settled(chunk: Sequence[str], reading: Future[dict[str, Outcome]], seconds: float) -> Iterable[Outcome]:
    # An answer that is there already is not waited for: the loop would let go of the interpreter, which threads that
    # decode give back only after some milliseconds.
    if not reading.done():
        try:
            async with asyncio.timeout(seconds):
                await asyncio.wrap_future(reading)
        except TimeoutError:
            return [timed_out(key, seconds) for key in chunk]
    outcomes = reading.result()
    return [outcomes[key] for key in chunk]
