"""The interface of a namespace, whatever backend stores its entries."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from vskill.kv.listing import KeyPage
from vskill.kv.outcomes import Outcome


class Namespace(Protocol):
    """Entries by key, each with a JSON value, metadata, a version that every write raises, and an optional expiry.

    The tests in ``tests/vskill/kv/conformance.py`` specify the details; every backend has to pass them.
    """

    async def get(self, key: str, *, timeout: float | None = None) -> Outcome:  # noqa: ASYNC109 - a timeout is an outcome here
        """Return the outcome of one key, ``TIMED_OUT`` after ``timeout`` seconds.

        Any number of reads may be awaited concurrently; each settles on its own.
        """

    def get_many(self, keys: Iterable[str] | AsyncIterable[str], *, window: int = ...) -> AsyncIterator[Outcome]:
        """Yield the outcome of each key in the order of ``keys``; at most ``window`` keys are in flight."""

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
        """Write one entry, replacing the whole of it, and return its new version.

        ``value`` is anything that JSON can express, ``metadata`` a mapping of such values. The entry expires at
        ``expires_at``, an aware datetime, or ``ttl`` from now, but not both. ``expect_version`` makes the write a
        compare-and-set: 0 expects no entry, ``None`` anything. Raises ``VersionConflict`` where another version is
        there, ``InvalidKey`` and ``InvalidValue``.
        """

    async def delete(self, key: str, *, expect_version: int | None = None) -> bool:
        """Delete one entry and return whether it existed; raise ``VersionConflict`` as ``put`` does.

        A key that is written again after it was deleted or purged starts at version 1, so a compare-and-set cannot
        tell the new entry from the old one. Where a caller may still hold an old version, write a tombstone instead of
        deleting, or put an identity into the value.
        """

    async def list(self, prefix: str = "", *, limit: int = ..., cursor: str | None = None) -> KeyPage:
        """Return one page of at most ``limit`` keys that start with ``prefix``, in bytewise order.

        ``cursor`` continues after the previous page; raises ``InvalidCursor`` for one of another listing.
        """

    def list_all(self, prefix: str = "", *, page: int = ...) -> AsyncIterator[str]:
        """Yield every key that starts with ``prefix``, read in pages of ``page`` keys."""

    def scan(self, prefix: str = "", *, window: int = ...) -> AsyncIterator[Sequence[Outcome]]:
        """Yield the outcomes of all keys that start with ``prefix``, many at a time, without expired entries."""

    async def purge_expired(self) -> int:
        """Delete every expired entry and return their number; later versions start at 1, as after ``delete``."""
