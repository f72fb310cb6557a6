"""What every namespace promises, wherever it keeps its entries."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from vskill.kv.listing import KeyPage
from vskill.kv.outcomes import Outcome


class Namespace(Protocol):
    """Keys with a JSON value, metadata, a version that every write raises, and perhaps a time of expiry.

    ``tests/kv/conformance.py`` says in tests what the words here leave open; a new backend runs it.
    """

    async def get(self, key: str, *, timeout: float | None = None) -> Outcome:  # noqa: ASYNC109 - a timeout is an outcome here
        """Return the outcome of one key; any number may be awaited at once, and each settles by itself."""

    def get_many(self, keys: Iterable[str] | AsyncIterable[str], *, window: int = ...) -> AsyncIterator[Outcome]:
        """Yield the outcome of each key in the order asked, with at most ``window`` of them on their way."""

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
        """Write one entry and return its new version; raise ``VersionConflict`` where it is not at the one expected."""

    async def delete(self, key: str, *, expect_version: int | None = None) -> bool:
        """Delete one entry and return whether there was one; raise ``VersionConflict`` as ``put`` does.

        A key that is written again after it was deleted or purged starts at version 1, and ``put`` and ``delete``
        cannot tell its new entry from the old one by the version. Where somebody may still hold an old version, write
        what says "gone" instead of deleting, or put into the value what tells one entry from the next.
        """

    async def list(self, prefix: str = "", *, limit: int = ..., cursor: str | None = None) -> KeyPage:
        """Return one page of the keys that start with ``prefix``, in bytewise order."""

    def list_all(self, prefix: str = "", *, page: int = ...) -> AsyncIterator[str]:
        """Yield every key that starts with ``prefix``."""

    def scan(self, prefix: str = "", *, window: int = ...) -> AsyncIterator[Sequence[Outcome]]:
        """Yield the outcome of every key that starts with ``prefix`` and has not expired, many at a time."""

    async def purge_expired(self) -> int:
        """Delete every entry that has expired and return how many there were; versions start anew as by ``delete``."""
