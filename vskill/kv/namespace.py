"""The public interface of the KV layer: the entries of one table in one environment."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from datetime import datetime, timedelta
from itertools import islice
from time import monotonic
from typing import Any, Final

from django.conf import settings

from vskill.environments import WorkerEnv
from vskill.kv import writer
from vskill.kv.codec import check_key
from vskill.kv.listing import MAX_PAGE, KeyPage, list_keys, list_names
from vskill.kv.loader import Source, current_batcher, start_chunk, timed_out
from vskill.kv.models import AbstractKVEntry
from vskill.kv.outcomes import Outcome, Status
from vskill.kv.probe import probe
from vskill.kv.reader import CHUNK_SIZE, deadline_after, read_chunk
from vskill.kv.threads import readers, writers
from vskill.worker_context import refuse_closed_scope

DEFAULT_WINDOW: Final = 2000
# Seconds that a stream may run before it lets other tasks of the event loop run.
LONGEST_TURN: Final = 0.05


class KVNamespace:
    """The entries of one table that belong to one environment.

    Any number of ``get()`` may be awaited concurrently. Each settles on its own, and the database gets selects of at
    most 500 keys, at most ``KV_READ_WORKERS`` of them at a time. To read a whole key space use ``scan(prefix)``, whose
    memory does not grow with the number of entries.
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
        """Return the outcome of one key: ``TIMED_OUT`` after ``KV_READ_TIMEOUT`` seconds, or ``timeout`` if shorter.

        Raises ``InvalidKey``, and ``EnvClosed`` in work that outlived its environment's scope.
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
        """Yield the outcome of each key in the order of ``keys``.

        At most ``window`` keys are being read or wait to be yielded, so memory does not grow with their number. Raises
        what ``get`` does.
        """
        size = max(1, min(CHUNK_SIZE, window))
        async with aclosing(self._read(_chunks(keys, size), max(1, window // size))) as parts:
            async for outcomes in parts:
                for outcome in outcomes:
                    yield outcome

    async def scan(self, prefix: str = "", *, window: int = DEFAULT_WINDOW) -> AsyncIterator[Sequence[Outcome]]:
        """Yield the outcomes of all keys that start with ``prefix``, in bytewise order and without expired entries.

        Each item is a sequence of outcomes. They are those of ``get_many(list_all(prefix))``, but the keys are listed
        from their index only, which takes less time. ``window`` is that of ``get_many``.
        """
        size = max(1, min(CHUNK_SIZE, window))
        async with aclosing(self._read(self._listed(prefix, size), max(1, window // size))) as parts:
            async for outcomes in parts:
                yield [outcome for outcome in outcomes if outcome.status is not Status.EXPIRED]

    async def _listed(self, prefix: str, size: int) -> AsyncGenerator[list[str], None]:
        page = max(size, MAX_PAGE // size * size)

        def list_after(last: str | None) -> Future[tuple[list[str], bool]]:
            return readers.submit(list_names, *self._source, prefix, last, page, live=False)

        listing = list_after(None)
        try:
            while True:
                async with asyncio.timeout(settings.KV_READ_TIMEOUT):
                    names, complete = await asyncio.wrap_future(listing)
                if not complete:
                    # The next page is listed while the entries of this one are read.
                    listing = list_after(names[-1])
                for start in range(0, len(names), size):
                    yield names[start : start + size]
                if complete:
                    return
        finally:
            listing.cancel()

    async def _read(
        self, chunks: AsyncGenerator[list[str], None], most_at_once: int
    ) -> AsyncGenerator[list[Outcome], None]:
        """Yield the outcomes of each chunk; at most ``most_at_once`` are being read or wait to be yielded."""
        refuse_closed_scope()
        seconds = settings.KV_READ_TIMEOUT
        started: deque[tuple[list[str], Future[dict[str, Outcome]]]] = deque()
        ended = False
        turn_over_at = monotonic() + LONGEST_TURN
        try:
            async with aclosing(chunks):
                while True:
                    while not ended and len(started) < most_at_once:
                        chunk = await anext(chunks, None)
                        if chunk is None:
                            ended = True
                        else:
                            reading = start_chunk(self._source, chunk, deadline_after(seconds))
                            started.append((chunk, reading))
                            probe.begin_reads(len(chunk))
                    if not started:
                        return
                    outcomes = await _settled(*started[0], seconds)
                    probe.end_reads(len(started.popleft()[0]))
                    yield outcomes
                    if monotonic() > turn_over_at:
                        # Outcomes that are ready are yielded without waiting, so other tasks would never run.
                        await asyncio.sleep(0)
                        turn_over_at = monotonic() + LONGEST_TURN
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
        """Write one entry on a writer thread and return its new version.

        ``value``, ``metadata``, ``expires_at``, ``ttl``, ``expect_version`` and the errors are those of ``put_sync``,
        whose transaction it does not share. Raises ``EnvClosed`` in work that outlived its scope.
        """
        return await writers.run(
            self.put_sync, key, value, metadata=metadata, expires_at=expires_at, ttl=ttl, expect_version=expect_version
        )

    async def delete(self, key: str, *, expect_version: int | None = None) -> bool:
        """Delete one entry on a writer thread and return whether it existed; see ``delete_sync``."""
        return await writers.run(self.delete_sync, key, expect_version=expect_version)

    async def list(self, prefix: str = "", *, limit: int = MAX_PAGE, cursor: str | None = None) -> KeyPage:
        """Return one page of the keys that start with ``prefix``, in bytewise order; see ``list_keys``."""
        return await readers.run(self.list_sync, prefix, limit=limit, cursor=cursor)

    async def list_all(self, prefix: str = "", *, page: int = MAX_PAGE) -> AsyncIterator[str]:
        """Yield every key that starts with ``prefix``, in bytewise order, read in pages of ``page`` keys."""
        limit, after = max(1, min(page, MAX_PAGE)), None
        complete = False
        while not complete:
            names, complete = await readers.run(list_names, *self._source, prefix, after, limit)
            for name in names:
                yield name
            after = names[-1] if names else None

    async def purge_expired(self) -> int:
        """Delete every expired entry and return their number."""
        purged = 0
        while count := await writers.run(writer.purge_expired, *self._source):
            purged += count
        return purged

    def get_sync(self, key: str) -> Outcome:
        """Return the outcome of one key, read on the connection of the calling thread and so in its transaction."""
        check_key(key)
        return read_chunk(*self._source, [key])[key]

    def get_few_sync(self, keys: Iterable[str]) -> Sequence[Outcome]:
        """Return the outcomes of some keys in their order, read at once on the connection of the calling thread.

        All of them are in memory at once, so they are few.
        """
        wanted = list(keys)
        for key in wanted:
            check_key(key)
        names = list(dict.fromkeys(wanted))
        outcomes: dict[str, Outcome] = {}
        for first in range(0, len(names), CHUNK_SIZE):
            outcomes |= read_chunk(*self._source, names[first : first + CHUNK_SIZE])
        return [outcomes[key] for key in wanted]

    def get_all_sync(self, prefix: str) -> Sequence[Outcome]:
        """Return the outcomes of all keys that start with ``prefix``, in bytewise order, read on the calling thread.

        For a prefix that few keys have: all of them are in memory at once.
        """
        outcomes: dict[str, Outcome] = {}
        complete, after = False, None
        while not complete:
            names, complete = list_names(*self._source, prefix, after, CHUNK_SIZE)
            outcomes |= read_chunk(*self._source, names)
            after = names[-1] if names else None
        return [outcomes[key] for key in sorted(outcomes, key=str.encode)]

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
        """Write one entry on the calling thread and return its new version.

        ``value`` is anything that JSON can express, ``metadata`` a mapping of such values. The entry expires at
        ``expires_at``, an aware datetime, or ``ttl`` from now, but not both. ``expect_version`` makes the write a
        compare-and-set: 0 expects no entry, another number the version that was read, ``None`` anything. Raises
        ``VersionConflict`` with nothing written, ``InvalidKey`` and ``InvalidValue``.
        """
        return writer.put(
            *self._source, key, value, metadata=metadata, expires_at=expires_at, ttl=ttl, expect_version=expect_version
        )

    def delete_sync(self, key: str, *, expect_version: int | None = None) -> bool:
        """Delete one entry on the connection of the calling thread and return whether it existed.

        Raises ``VersionConflict`` where ``expect_version`` is given and another version is there. A key that is written
        again after it was deleted or purged starts at version 1, so a caller that still holds a version of the old
        entry may match the new one. Where that would do harm, write a tombstone instead of deleting.
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


async def _settled(chunk: Sequence[str], reading: Future[dict[str, Outcome]], seconds: float) -> list[Outcome]:
    # A result that is ready is not awaited: the event loop would release the interpreter, and get it back from the
    # threads that decode only after some milliseconds.
    if not reading.done():
        try:
            async with asyncio.timeout(seconds):
                await asyncio.wrap_future(reading)
        except TimeoutError:
            return [timed_out(key, seconds) for key in chunk]
    outcomes = reading.result()
    return [outcomes[key] for key in chunk]
