"""The namespace in memory keeps the promises of the port."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.vskill.kv.conformance import NamespaceConformance
from tests.vskill.kv.conformance_listing import ListingConformance
from vskill.kv.memory import MemoryNamespace
from vskill.kv.outcomes import Status
from vskill.kv.port import Namespace


class TestMemoryNamespace(NamespaceConformance, ListingConformance):
    """Run the suite in memory."""

    @pytest.fixture
    def namespace(self) -> Namespace:
        """Return a store of its own."""
        return MemoryNamespace("default")

    @pytest.fixture
    def neighbour(self) -> Namespace:
        """Return the store of another environment."""
        return MemoryNamespace("neighbour")

    async def damage(self, namespace: Namespace, key: str, text: str) -> None:
        """Overwrite the text."""
        assert isinstance(namespace, MemoryNamespace)
        namespace.overwrite_text(key, text)


async def test_an_entry_expires_in_the_moment_that_the_clock_reaches() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    namespace = MemoryNamespace("default", clock=lambda: now)
    await namespace.put("key", 1, ttl=timedelta(seconds=10))
    now += timedelta(seconds=9.999)
    assert (await namespace.get("key")).status is Status.VALUE
    now += timedelta(seconds=0.001)
    assert (await namespace.get("key")).status is Status.EXPIRED
