"""Counts in the database: one for all processes, each within its window, and no more rows than there may be."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import connections
from limits import parse
from limits.strategies import FixedWindowRateLimiter

from vskill.environments import WorkerEnv
from vskill.rate_limits.models import RequestCount
from vskill.rate_limits.stored_counts import StoredCounts, delete_ended

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def counts() -> StoredCounts:
    return StoredCounts("default", "default")


def ended(key: str, count: int) -> None:
    RequestCount.objects.create(namespace="default", key=key, count=count, ends_at=time.time() - 1)


def test_the_library_counts_with_it(counts: StoredCounts) -> None:
    limiter, rate = FixedWindowRateLimiter(counts), parse("3/hour")
    before = time.time()
    assert [limiter.hit(rate, "a") for _ in range(4)] == [True, True, True, False]
    assert limiter.hit(rate, "b")
    resets_at, remaining = limiter.get_window_stats(rate, "a")
    assert remaining == 0
    assert before + 3600 <= resets_at <= time.time() + 3600
    limiter.clear(rate, "a")
    assert limiter.test(rate, "a")


def test_counting_never_moves_the_end_of_a_window(counts: StoredCounts) -> None:
    first = counts.add({"a": (1, 60.0)})["a"]
    second = counts.add({"a": (1, 3600.0)})["a"]
    assert (second.count, second.ends_at) == (2, first.ends_at)


def test_a_window_that_has_ended_counts_as_nothing_and_begins_anew(counts: StoredCounts) -> None:
    ended("a", 40)
    assert counts.get("a") == 0
    window = counts.add({"a": (2, 60.0)})["a"]
    assert window.count == 2
    assert window.ends_at > time.time()


def test_environments_count_apart(counts: StoredCounts) -> None:
    other = StoredCounts("default", "internal")
    counts.incr("a", 60, 5)
    assert (counts.get("a"), other.get("a")) == (5, 0)
    assert other.incr("a", 60) == 1
    assert other.reset() == 1
    assert counts.get("a") == 5


def test_many_at_once_lose_no_count(counts: StoredCounts) -> None:
    def count() -> None:
        try:
            for number in range(20):
                # In opposite orders, which locks rows in opposite orders unless somebody sorts them.
                keys = [f"key {one}" for one in (range(5) if number % 2 else reversed(range(5)))]
                counts.add(dict.fromkeys(keys, (1, 60.0)))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {window.count for window in counts.windows([f"key {one}" for one in range(5)]).values()} == {80}


def test_what_was_taken_back_counts_no_more(counts: StoredCounts) -> None:
    counts.add({"a": (2, 60.0), "b": (1, 60.0)})
    counts.take_back(["a", "b", "never"])
    counts.take_back(["b"])
    assert [counts.get(key) for key in ("a", "b", "never")] == [1, 0, 0]


def test_ended_counts_are_deleted_and_others_stay(counts: StoredCounts) -> None:
    ended("a", 1)
    counts.incr("b", 60)
    assert delete_ended("default") == 1
    assert list(RequestCount.objects.values_list("key", flat=True)) == ["b"]


def test_a_hundred_thousand_addresses_leave_a_bounded_table_with_the_busy_ones(counts: StoredCounts) -> None:
    few = StoredCounts("default", "default", most_rows=2_000)
    few.add({"busy": (500, 3600.0)})
    for start in range(0, 100_000, 5_000):
        few.add({f"address {number}": (1, 3600.0) for number in range(start, start + 5_000)})
        assert RequestCount.objects.count() <= 2_000 + 5_000
    assert RequestCount.objects.count() <= 2_000
    assert few.get("busy") == 500


def test_a_table_that_is_there_can_be_counted_in(counts: StoredCounts, env: WorkerEnv) -> None:
    assert counts.check()
