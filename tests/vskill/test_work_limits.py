"""A limit of work counts the work and not the wait for a slot."""

from __future__ import annotations

import asyncio

import pytest

from tests.loop_time import WatchedPlaces, let_time_pass
from vskill.fair_slots import FairSlots
from vskill.work_limits import OutOfTime, hold_slot, work_limit


async def never() -> None:
    """Wait for what does not come."""
    await asyncio.Event().wait()


async def at(slots: FairSlots, work: asyncio.Event) -> None:
    """Hold a slot until ``work`` is done."""
    async with hold_slot(slots):
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


async def test_the_clock_goes_on_where_it_stopped_once_there_is_a_slot() -> None:
    slots, begun = WatchedPlaces(), asyncio.Event()

    async def work() -> None:
        async with work_limit(10_000):
            await begun.wait()
            await at(slots, asyncio.Event())

    working = asyncio.create_task(work())
    await asyncio.sleep(0)
    await let_time_pass(6_000)
    begun.set()
    await slots.asked.wait()
    await let_time_pass(100_000)
    slots.add_one()
    await asyncio.sleep(0)
    await let_time_pass(3_000)
    assert not working.done()
    await let_time_pass(1_000)
    with pytest.raises(OutOfTime):
        await working
    assert slots.free == 1, "the slot was not given back"


async def test_work_beside_a_part_that_waits_is_counted() -> None:
    free, taken = FairSlots(1), WatchedPlaces()

    async def work() -> None:
        async with work_limit(10), asyncio.TaskGroup() as parts:
            parts.create_task(at(free, asyncio.Event()))
            parts.create_task(at(taken, asyncio.Event()))

    working = asyncio.create_task(work())
    await taken.asked.wait()
    await let_time_pass(11)
    with pytest.raises(OutOfTime):
        await working


async def test_a_wait_that_is_cancelled_leaves_no_clock_stopped_and_no_slot_taken() -> None:
    slots = WatchedPlaces()

    async def work() -> None:
        async with work_limit(10):
            waiting = asyncio.create_task(at(slots, asyncio.Event()))
            await slots.asked.wait()
            waiting.cancel()
            await asyncio.wait([waiting])
            await never()

    working = asyncio.create_task(work())
    await slots.asked.wait()
    for _turn in range(3):
        await asyncio.sleep(0)
    await let_time_pass(11)
    with pytest.raises(OutOfTime):
        await working
    slots.add_one()
    assert slots.free == 1


async def test_a_part_that_outlives_the_work_has_no_clock_any_more() -> None:
    slots, done = WatchedPlaces(), asyncio.Event()
    async with work_limit(10):
        left_behind = asyncio.create_task(at(slots, done))
        await slots.asked.wait()
    done.set()
    slots.add_one()
    await left_behind


async def test_a_timeout_of_the_work_itself_is_not_taken_for_the_limit() -> None:
    with pytest.raises(TimeoutError, match="the host did not answer"):
        async with work_limit(10):
            raise TimeoutError("the host did not answer")


async def test_without_a_limit_a_slot_is_still_waited_for() -> None:
    slots, done = WatchedPlaces(), asyncio.Event()
    waiting = asyncio.create_task(at(slots, done))
    await slots.asked.wait()
    slots.add_one()
    done.set()
    await waiting
    assert slots.free == 1
