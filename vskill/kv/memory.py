"""A namespace in memory, for tests of code that uses the port and for work that needs no database."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from vskill.kv.clock import check_expiry
from vskill.kv.codec import check_key, check_prefix, encode
from vskill.kv.errors import VersionConflict
from vskill.kv.listing import MAX_PAGE, KeyPage, ListedKey, make_cursor, read_cursor
from vskill.kv.outcomes import Outcome, Status, decode_row


@dataclass(frozen=True, slots=True)
class _Entry:
    text: str
    metadata: str
    version: int
    expires_at: datetime | None


def _now() -> datetime:
    return datetime.now(UTC)


class MemoryNamespace:
    """The entries of one environment, in the memory of this process.

    Values are stored as JSON text, as a database would, so callers never share an object with the store. ``clock``
    returns the present time.
    """

    def __init__(self, name: str, *, clock: Callable[[], datetime] = _now) -> None:
        self.name = name
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<MemoryNamespace {self.name!r}>"

    def _has_expired(self, entry: _Entry) -> bool:
        return entry.expires_at is not None and entry.expires_at <= self._clock()

    def _live(self, key: str) -> _Entry | None:
        entry = self._entries.get(key)
        return None if entry is None or self._has_expired(entry) else entry

    async def get(self, key: str, *, timeout: float | None = None) -> Outcome:  # noqa: ARG002, ASYNC109 - part of the port; nothing waits here
        """Return the outcome of one key; it never times out."""
        with self._lock:
            entry = self._entries.get(check_key(key))
            if entry is None:
                return Outcome(key, Status.MISSING)
            return decode_row((key, entry.text, entry.version, entry.metadata, self._has_expired(entry)))

    async def get_many(
        self,
        keys: Iterable[str] | AsyncIterable[str],
        *,
        window: int = 0,  # noqa: ARG002 - part of the port; nothing is in flight here
    ) -> AsyncIterator[Outcome]:
        """Yield the outcome of each key in the order of ``keys``."""
        if isinstance(keys, AsyncIterable):
            async for key in keys:
                yield await self.get(key)
        else:
            for key in keys:
                yield await self.get(key)

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
        """Write one entry and return its new version.

        ``value``, ``metadata``, ``expires_at``, ``ttl``, ``expect_version`` and the errors are those of
        ``Namespace.put``; ``ttl`` counts from the time of ``clock``.
        """
        check_key(key)
        check_expiry(expires_at, ttl)
        if ttl is not None:
            expires_at = self._clock() + ttl
        text, described = encode(value), encode(dict(metadata or {}))
        with self._lock:
            self._check_version(key, expect_version)
            before = self._entries.get(key)
            version = before.version + 1 if before is not None else 1
            self._entries[key] = _Entry(text, described, version, expires_at)
        return version

    async def delete(self, key: str, *, expect_version: int | None = None) -> bool:
        """Delete one entry and return whether it existed; see ``Namespace.delete``."""
        check_key(key)
        with self._lock:
            self._check_version(key, expect_version)
            if self._live(key) is None:
                return False
            del self._entries[key]
            return True

    def _check_version(self, key: str, expected: int | None) -> None:
        live = self._live(key)
        if expected is not None and expected != (live.version if live else 0):
            raise VersionConflict(
                f"{key!r} was expected at version {expected}, and another writer was first. Nothing was written."
            )

    async def list(self, prefix: str = "", *, limit: int = MAX_PAGE, cursor: str | None = None) -> KeyPage:
        """Return one page of the keys that start with ``prefix``, in bytewise order; see ``Namespace.list``."""
        check_prefix(prefix)
        limit = max(1, min(limit, MAX_PAGE))
        after = read_cursor(self.name, prefix, cursor) if cursor else ""
        with self._lock:
            # Code points sort in the order of UTF-8 bytes.
            names = sorted(key for key in self._entries if key.startswith(prefix) and key > after and self._live(key))
        keys = [await self._listed(name) for name in names[:limit]]
        complete = len(names) <= limit
        return KeyPage(tuple(keys), complete, None if complete else make_cursor(self.name, prefix, keys[-1].name))

    async def _listed(self, name: str) -> ListedKey:
        outcome = await self.get(name)
        return ListedKey(name, outcome.metadata if outcome.found else None)

    async def list_all(self, prefix: str = "", *, page: int = MAX_PAGE) -> AsyncIterator[str]:
        """Yield every key that starts with ``prefix``, read in pages of ``page`` keys."""
        cursor: str | None = None
        while True:
            listed = await self.list(prefix, limit=page, cursor=cursor)
            for key in listed.keys:
                yield key.name
            if listed.list_complete:
                return
            cursor = listed.cursor

    async def scan(self, prefix: str = "", *, window: int = MAX_PAGE) -> AsyncIterator[Sequence[Outcome]]:
        """Yield the outcomes of all keys that start with ``prefix``, ``window`` at a time, without expired entries."""
        outcomes: list[Outcome] = []
        async for outcome in self.get_many(self.list_all(prefix)):
            if outcome.status is not Status.EXPIRED:
                outcomes.append(outcome)
            if len(outcomes) >= window:
                yield outcomes
                outcomes = []
        if outcomes:
            yield outcomes

    async def purge_expired(self) -> int:
        """Delete every expired entry and return their number."""
        with self._lock:
            expired = [key for key, entry in self._entries.items() if self._has_expired(entry)]
            for key in expired:
                del self._entries[key]
        return len(expired)

    def overwrite_text(self, key: str, text: str) -> None:
        """Replace the stored text of a value, as a damaged disk would; for tests of readers."""
        with self._lock:
            entry = self._entries[key]
            self._entries[key] = _Entry(text, entry.metadata, entry.version, entry.expires_at)
