"""Counts of a process: no query for most requests, what others count is adopted, and memory is bounded."""

from __future__ import annotations

import pytest
from django.db import OperationalError
from pytest_django import DjangoAssertNumQueries

from vskill.kv.threads import writers
from vskill.rate_limits.models import RequestCount
from vskill.rate_limits.process_counts import ProcessCounts
from vskill.rate_limits.stored_counts import StoredCounts, Window

pytestmark = pytest.mark.django_db(transaction=True)


def stored() -> StoredCounts:
    return StoredCounts("default", "default")


def count(counts: ProcessCounts, key: str, times: int) -> int:
    """Count, and wait after each time for what that left to a thread."""
    total = 0
    for _ in range(times):
        total = counts.incr(key, 3600)
        writers.close()
    return total


def test_who_stays_below_a_part_of_the_limit_costs_no_query(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    counts = ProcessCounts(stored(), 5)
    with django_assert_num_queries(0):
        assert count(counts, "a", 4) == 4
    assert not RequestCount.objects.exists()


def test_two_processes_learn_of_each_other() -> None:
    first, second = ProcessCounts(stored(), 5), ProcessCounts(stored(), 5)
    assert count(first, "a", 10) == 10
    assert count(second, "a", 4) == 4
    # The fifth tells the others, and is told.
    count(second, "a", 1)
    assert second.get("a") == 15
    count(first, "a", 5)
    assert first.get("a") == 20
    assert stored().get("a") == 20


def test_processes_agree_when_a_window_ends() -> None:
    first, second = ProcessCounts(stored(), 1), ProcessCounts(stored(), 1)
    count(first, "a", 1)
    count(second, "a", 1)
    assert first.get_expiry("a") == second.get_expiry("a") == stored().get_expiry("a")


def test_a_hundred_thousand_addresses_fill_neither_memory_nor_the_table() -> None:
    counts = ProcessCounts(stored(), 5, most=1_000)
    for number in range(100_000):
        counts.incr(f"address {number}", 3600)
        counts.incr("busy", 3600)
        assert len(counts) <= 1_000
    writers.close()
    counts.incr("busy", 3600)
    writers.close()
    assert counts.get("busy") == 100_001
    assert list(RequestCount.objects.values_list("key", flat=True)) == ["busy"]


def test_who_was_forgotten_is_remembered_by_the_others() -> None:
    counts = ProcessCounts(stored(), 5, most=1)
    count(counts, "a", 10)
    count(counts, "b", 1)
    assert counts.get("a") == 0
    count(counts, "a", 5)
    assert counts.get("a") == 15


class Away(StoredCounts):
    """A database that does not answer."""

    tries = 0

    def add(self, amounts: object) -> dict[str, Window]:
        self.tries += 1
        raise OperationalError("the database is away")


def test_while_the_database_is_away_a_process_counts_alone_and_does_not_ask_at_each_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    away = Away("default", "default")
    counts = ProcessCounts(away, 1)
    assert count(counts, "a", 50) == 50
    assert away.tries == 1
    assert "counts of requests are not shared" in caplog.text


def test_what_was_counted_meanwhile_is_settled_later() -> None:
    counts = ProcessCounts(Away("default", "default"), 1)
    count(counts, "a", 3)
    counts._stored = stored()
    counts._not_before = 0.0
    count(counts, "a", 1)
    assert stored().get("a") == 4
