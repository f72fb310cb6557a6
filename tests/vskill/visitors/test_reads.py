"""Reads for visitors: their statements end in the database, at the deadline or when the visitor leaves."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import pytest
from django.db import connection
from django.test import override_settings

from tests.vskill.visitors.endless import Watched, endless, endless_after_the_first_row, one, running
from vskill.environments import WorkerEnv
from vskill.kv.errors import EntryUnavailable
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.threads import DatabaseThreads, close_database_threads
from vskill.visitors.errors import TooBusy, TooSlow
from vskill.visitors.reads import VisitorReads, ahead_of_reads, ended_early

# Longer than any test runs.
FOR_GOOD: Final = 3600.0
SOON: Final = 0.05

pytestmark = pytest.mark.django_db(transaction=True)
on_postgresql = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no server to ask")


@pytest.fixture
def threads() -> Iterator[DatabaseThreads]:
    """Return one thread: work after other work runs only if the thread is free again."""
    made = DatabaseThreads("visitor-test", lambda: 1)
    yield made
    made.close()


@pytest.fixture
def reads(threads: DatabaseThreads) -> VisitorReads:
    return VisitorReads(threads)


@pytest.mark.parametrize("func", [endless, endless_after_the_first_row])
async def test_a_statement_without_end_is_ended_in_the_database_and_its_thread_is_free(
    reads: VisitorReads, func: Callable[[], Any]
) -> None:
    before = ended_early().get("too_slow", 0)
    with override_settings(VISITOR_SECONDS=SOON), pytest.raises(TooSlow, match="took too long"):
        await reads.run(func)

    with override_settings(VISITOR_SECONDS=FOR_GOOD):
        assert await reads.run(one) == 1
    assert ended_early()["too_slow"] == before + 1


@pytest.mark.postgres
@on_postgresql
async def test_the_server_runs_nothing_of_it_any_more(reads: VisitorReads) -> None:
    with override_settings(VISITOR_SECONDS=SOON), pytest.raises(TooSlow):
        await reads.run(endless)
    assert await asyncio.to_thread(_running_here) == 0


def _running_here() -> int:
    try:
        return running()
    finally:
        connection.close()


async def test_a_statement_that_would_begin_after_the_deadline_does_not(reads: VisitorReads) -> None:
    def work() -> int:
        one()
        end = time.monotonic() + SOON
        while time.monotonic() < end:
            pass
        return one()

    with override_settings(VISITOR_SECONDS=SOON), pytest.raises(TooSlow):
        await reads.run(work)


async def test_an_entry_whose_statement_was_ended_counts_as_too_slow_and_not_as_unreadable(
    env: WorkerEnv, reads: VisitorReads
) -> None:
    namespace = KVNamespace(KVEntry, env)

    def work() -> Any:
        try:
            endless()
        except Exception as error:
            raise EntryUnavailable("no answer", "unreadable") from error

    with override_settings(VISITOR_SECONDS=SOON), pytest.raises(TooSlow):
        await reads.run(work)
    with override_settings(VISITOR_SECONDS=FOR_GOOD):
        assert (await reads.run(namespace.get_sync, "none")).absent


async def test_an_error_of_the_work_itself_arrives_as_it_is(reads: VisitorReads) -> None:
    def work() -> None:
        raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own"):
        await reads.run(work)


@override_settings(VISITOR_SECONDS=FOR_GOOD)
async def test_a_visitor_who_leaves_ends_the_statement_that_runs(reads: VisitorReads) -> None:
    watched = Watched(endless)
    before = ended_early().get("visitor_left", 0)
    asking = asyncio.ensure_future(reads.run(watched))
    await asyncio.to_thread(watched.begun.wait)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    # Only now is the one thread free.
    assert await reads.run(one) == 1
    assert ended_early()["visitor_left"] == before + 1


@override_settings(VISITOR_SECONDS=FOR_GOOD)
async def test_work_of_a_visitor_who_left_before_it_began_is_dropped(
    reads: VisitorReads, threads: DatabaseThreads
) -> None:
    released = threading.Event()
    done: list[str] = []
    occupied = threads.submit(released.wait)
    asking = asyncio.ensure_future(reads.run(done.append, "left"))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    released.set()
    await reads.run(done.append, "stayed")

    assert done == ["stayed"]
    assert occupied.result()


async def test_leaving_at_any_moment_never_ends_the_statement_of_the_next_visitor(reads: VisitorReads) -> None:
    def short() -> int:
        return sum(one() for _ in range(3))

    for turns in range(200):
        asking = asyncio.ensure_future(reads.run(short))
        for _ in range(turns % 7):
            await asyncio.sleep(0)
        await asyncio.to_thread(one_turn, turns)
        asking.cancel()
        assert await reads.run(short) == 3
        await asyncio.gather(asking, return_exceptions=True)


def one_turn(turns: int) -> int:
    """Take a few microseconds, more with each turn, so that the visitor leaves at another moment each time."""
    return sum(range(turns * 20))


async def test_who_waits_too_long_for_a_thread_is_told_so_and_nothing_is_begun(
    reads: VisitorReads, threads: DatabaseThreads
) -> None:
    released = threading.Event()
    occupied = threads.submit(released.wait)
    done: list[str] = []
    with override_settings(VISITOR_WAIT=SOON), pytest.raises(TooBusy, match="has not begun"):
        await reads.run(done.append, "late")
    released.set()
    with override_settings(VISITOR_SECONDS=FOR_GOOD):
        await reads.run(done.append, "next")

    assert done == ["next"]
    assert occupied.result()


async def test_the_next_part_of_what_is_being_sent_waits_for_a_thread_as_long_as_it_takes(
    threads: DatabaseThreads,
) -> None:
    released = threading.Event()
    occupied = threads.submit(released.wait)
    impatient, patient = VisitorReads(threads), VisitorReads(threads, patient=True)
    with override_settings(VISITOR_WAIT=SOON):
        waiting = asyncio.ensure_future(patient.run(int))
        with pytest.raises(TooBusy):
            await impatient.run(int)
        released.set()
        assert await waiting == 0
    assert occupied.result()


def test_a_caller_without_an_event_loop_has_the_deadline_as_well(reads: VisitorReads) -> None:
    with override_settings(VISITOR_SECONDS=SOON), pytest.raises(TooSlow):
        reads.run_sync(endless)
    with override_settings(VISITOR_SECONDS=FOR_GOOD):
        assert reads.run_sync(one) == 1


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="of SQLite's connections")
async def test_other_work_on_the_same_thread_has_no_deadline_on_sqlite(
    reads: VisitorReads, threads: DatabaseThreads
) -> None:
    some = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) SELECT count(*) FROM n"

    def long() -> Any:
        with connection.cursor() as cursor:
            cursor.execute(some)
            return cursor.fetchone()[0]

    with override_settings(VISITOR_SECONDS=SOON):
        with suppress(TooSlow):
            await reads.run(one)
        await asyncio.to_thread(threading.Event().wait, SOON)
        assert await threads.run(long) == 300_000


@pytest.mark.postgres
@on_postgresql
async def test_a_connection_has_no_limit_when_it_is_back_in_the_pool(reads: VisitorReads) -> None:
    shown = "SELECT current_setting('statement_timeout')"

    def within() -> tuple[str, int]:
        with connection.cursor() as cursor:
            cursor.execute(f"{shown}, pg_backend_pid()")
            limit, process = cursor.fetchone()
            return str(limit), int(process)

    with override_settings(VISITOR_SECONDS=60):
        limit, process = await reads.run(within)
    await asyncio.to_thread(close_database_threads)
    limits = await asyncio.to_thread(_limits_in_the_pool)

    assert 45_000 <= _milliseconds(limit) <= 75_000
    assert limits[process] == "0"


def _milliseconds(limit: str) -> int:
    for unit, factor in (("ms", 1), ("min", 60_000), ("s", 1000)):
        if limit.endswith(unit):
            return int(limit.removesuffix(unit)) * factor
    return int(limit)


def _limits_in_the_pool() -> dict[int, str]:
    pool: Any = connection.pool  # type: ignore[attr-defined]  # PostgreSQL's wrapper has it
    taken = [pool.getconn() for _ in range(pool.get_stats()["pool_available"])]
    try:
        return dict(
            one.execute("SELECT pg_backend_pid(), current_setting('statement_timeout')").fetchone() for one in taken
        )
    finally:
        for one in taken:
            pool.putconn(one)


async def test_reads_take_turns_while_somebody_submits_and_run_side_by_side_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("vskill.visitors.reads.PATIENCE", FOR_GOOD)
    threads = DatabaseThreads("visitor-test", lambda: 2)
    reads, both, running_now, most = VisitorReads(threads), threading.Barrier(2), 0, []

    def meet() -> None:
        both.wait(timeout=60)

    def note() -> None:
        nonlocal running_now
        running_now += 1
        most.append(running_now)
        one()
        running_now -= 1

    try:
        with ahead_of_reads():
            await asyncio.gather(*(reads.run(note) for _ in range(20)))
        assert most == [1] * 20
        # Each waits for the other one, which begins only because nobody submits any more.
        await asyncio.gather(reads.run(meet), reads.run(meet))
    finally:
        threads.close()


async def test_a_read_that_has_waited_for_its_turn_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vskill.visitors.reads.PATIENCE", SOON)
    threads = DatabaseThreads("visitor-test", lambda: 2)
    reads, both = VisitorReads(threads), threading.Barrier(2)
    try:
        with ahead_of_reads():
            await asyncio.gather(*(reads.run(both.wait, 60) for _ in range(2)))
    finally:
        threads.close()
