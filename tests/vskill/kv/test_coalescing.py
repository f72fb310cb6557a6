"""What is asked for at the same time is done together, and each caller gets an answer of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from vskill.environments import WorkerEnv
from vskill.kv.coalescing import MOST_AT_ONCE, Group, group
from vskill.worker_context import get_worker_env, run_with_worker_env


class Doubler:
    """Double numbers, fail for negative ones, and remember what was asked for together."""

    def __init__(self) -> None:
        self.together: list[list[int]] = []
        self.seen: list[WorkerEnv | None] = []

    def work(self, numbers: Sequence[int]) -> list[int | Exception]:
        self.together.append(list(numbers))
        self.seen.append(get_worker_env())
        return [number * 2 if number >= 0 else ValueError(f"{number} is negative") for number in numbers]


async def test_callers_of_one_turn_are_served_together_and_in_order() -> None:
    doubler = Doubler()
    one = Group(doubler.work)
    assert await asyncio.gather(*(one.add(number) for number in range(5))) == [0, 2, 4, 6, 8]
    assert doubler.together == [[0, 1, 2, 3, 4]]


async def test_those_who_come_while_others_are_worked_on_go_together_afterwards() -> None:
    doubler = Doubler()
    one = Group(doubler.work)
    first = one.add(0)
    await asyncio.sleep(0)
    later = [one.add(number) for number in (1, 2)]
    assert await asyncio.gather(first, *later) == [0, 2, 4]
    assert doubler.together == [[0], [1, 2]]


async def test_more_than_one_statement_takes_are_served_in_parts() -> None:
    doubler = Doubler()
    one = Group(doubler.work)
    numbers = range(MOST_AT_ONCE * 2 + 1)
    assert await asyncio.gather(*(one.add(number) for number in numbers)) == [number * 2 for number in numbers]
    assert [len(part) for part in doubler.together] == [MOST_AT_ONCE, MOST_AT_ONCE, 1]


async def test_an_exception_for_one_is_raised_for_that_one_alone() -> None:
    one = Group(Doubler().work)
    ends = await asyncio.gather(one.add(1), one.add(-1), one.add(2), return_exceptions=True)
    assert [str(end) for end in ends] == ["2", "-1 is negative", "4"]


async def test_what_the_work_raises_is_raised_for_all_and_the_next_are_served() -> None:
    broken = [True]

    def work(numbers: Sequence[int]) -> list[int | Exception]:
        if broken.pop() if broken else False:
            raise ConnectionError("the database is away")
        return list(numbers)

    one: Group[int, int] = Group(work)
    ends = await asyncio.gather(one.add(1), one.add(2), return_exceptions=True)
    assert [str(end) for end in ends] == ["the database is away"] * 2
    assert await one.add(3) == 3


async def test_a_caller_that_gives_up_harms_no_other() -> None:
    one = Group(Doubler().work)
    impatient, patient = one.add(1), one.add(2)
    impatient.cancel()
    assert await patient == 4
    assert impatient.cancelled()


async def test_the_work_belongs_to_no_callers_environment() -> None:
    doubler = Doubler()
    one = Group(doubler.work)

    async def ask(number: int) -> int:
        return await one.add(number)

    env = WorkerEnv(name="public")
    assert await run_with_worker_env(env, ask, 1) == 2
    assert doubler.seen == [None]


def test_a_group_is_of_one_event_loop() -> None:
    async def named() -> Group[int, int]:
        first = group("numbers", Doubler().work)
        assert group("numbers", Doubler().work) is first
        assert group("others", Doubler().work) is not first
        return first

    assert asyncio.run(named()) is not asyncio.run(named())


@pytest.mark.parametrize("count", [1, 7])
async def test_nothing_is_left_waiting_afterwards(count: int) -> None:
    one = Group(Doubler().work)
    for _round in range(3):
        assert len(await asyncio.gather(*(one.add(number) for number in range(count)))) == count
