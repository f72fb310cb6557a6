"""Places and the limit of work: what counts is the work, and not the wait for others."""

from __future__ import annotations

import asyncio

import pytest

from tests.loop_time import WatchedPlaces, let_time_pass
from vskill.work_limits import OutOfTime, place, work_limit


async def never() -> None:
    """Wait for what does not come."""
    await asyncio.Event().wait()


async def at(places: asyncio.Semaphore, work: asyncio.Event) -> None:
    """Hold a place until ``work`` is done."""
    async with place(places):
        await work.wait()


async def test_work_without_an_end_is_ended_at_its_limit() -> None:
    async def work() -> None:
        async with work_limit(10_000):
            await never()

    working = asyncio.create_task(work())
    await asyncio.sleep(0)
    await let_time_pass(9_000)
    assert not working.done()
    await let_time_pass(1_000)
    with pytest.raises(OutOfTime, match="no end within 10000 s of work"):
        await working


async def test_the_clock_goes_on_where_it_stood_once_there_is_a_place() -> None:
    places, begun = WatchedPlaces(0), asyncio.Event()

    async def work() -> None:
        async with work_limit(10_000):
            await begun.wait()
            await at(places, asyncio.Event())

    working = asyncio.create_task(work())
    await asyncio.sleep(0)
    await let_time_pass(6_000)
    begun.set()
    await places.asked.wait()
    await let_time_pass(100_000)
    places.release()
    await asyncio.sleep(0)
    await let_time_pass(3_000)
    assert not working.done()
    await let_time_pass(1_000)
    with pytest.raises(OutOfTime):
        await working
    assert not places.locked(), "the place was not given back"


async def test_work_beside_a_part_that_waits_is_counted() -> None:
    free, taken = asyncio.Semaphore(1), WatchedPlaces(0)

    async def work() -> None:
        async with work_limit(10), asyncio.TaskGroup() as parts:
            parts.create_task(at(free, asyncio.Event()))
            parts.create_task(at(taken, asyncio.Event()))

    working = asyncio.create_task(work())
    await taken.asked.wait()
    await let_time_pass(11)
    with pytest.raises(OutOfTime):
        await working


async def test_a_wait_that_is_cancelled_leaves_no_clock_standing_and_no_place_taken() -> None:
    places = WatchedPlaces(0)

    async def work() -> None:
        async with work_limit(10):
            waiting = asyncio.create_task(at(places, asyncio.Event()))
            await places.asked.wait()
            waiting.cancel()
            await asyncio.wait([waiting])
            await never()

    working = asyncio.create_task(work())
    await places.asked.wait()
    for _turn in range(3):
        await asyncio.sleep(0)
    await let_time_pass(11)
    with pytest.raises(OutOfTime):
        await working
    places.release()
    assert not places.locked()


async def test_a_part_that_outlives_the_work_has_no_clock_any_more() -> None:
    places, done = WatchedPlaces(0), asyncio.Event()
    async with work_limit(10):
        left_behind = asyncio.create_task(at(places, done))
        await places.asked.wait()
    done.set()
    places.release()
    await left_behind


async def test_a_timeout_of_the_work_itself_is_not_taken_for_the_limit() -> None:
    with pytest.raises(TimeoutError, match="the host did not answer"):
        async with work_limit(10):
            raise TimeoutError("the host did not answer")


async def test_without_a_limit_a_place_is_waited_for_all_the_same() -> None:
    places, done = WatchedPlaces(0), asyncio.Event()
    waiting = asyncio.create_task(at(places, done))
    await places.asked.wait()
    places.release()
    done.set()
    await waiting
    assert not places.locked()
