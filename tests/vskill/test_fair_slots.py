"""Slots go round among those who wait, nobody holds more than its most, and a wait that is cancelled costs no slot."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vskill.fair_slots import FairSlots


class Line:
    """Work that asks for a slot, each piece by its path, and holds it until it is told to end."""

    def __init__(self, slots: FairSlots) -> None:
        self.slots = slots
        self.began: list[str] = []
        self.works: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}

    async def ask(self, *names: str) -> None:
        """Let work ask for a slot; the path of "a/x 1" is ("a", "x")."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self.works[name] = asyncio.create_task(self._work(name))
        await self.settle()

    async def _work(self, name: str) -> None:
        path = name.partition(" ")[0].split("/")
        await self.slots.acquire(*path)
        try:
            self.began.append(name)
            await self._ends[name].wait()
        finally:
            self.slots.release(*path)

    async def end(self, *names: str) -> None:
        """Let work end that holds a slot."""
        for name in names:
            self._ends[name].set()
            await self.settle()

    async def settle(self) -> None:
        """Let everything happen that can."""
        # Work that was told to end before it began hands its slot on as soon as it has one, and so may all of them.
        for _turn in range(4 * (1 + len(self.works))):
            await asyncio.sleep(0)

    async def end_everything(self) -> list[str]:
        """End whatever works, one after the other in the order in which it began, and return that order."""
        ended = 0
        while ended < len(self.began):
            await self.end(self.began[ended])
            ended += 1
        return self.began

    async def close(self) -> None:
        """End by force what still waits or works."""
        for work in self.works.values():
            work.cancel()
        await asyncio.gather(*self.works.values(), return_exceptions=True)


async def test_a_slot_goes_to_the_environments_in_turn_and_then_to_the_hosts_of_each() -> None:
    line = Line(FairSlots(1))
    await line.ask("a/x 1", "a/x 2", "a/x 3", "a/x 4", "a/y 1", "a/y 2", "b/x 1", "b/x 2")
    order = await line.end_everything()
    assert order == ["a/x 1", "a/x 2", "b/x 1", "a/y 1", "b/x 2", "a/x 3", "a/y 2", "a/x 4"]


async def test_those_with_equal_paths_are_served_in_the_order_in_which_they_came() -> None:
    line = Line(FairSlots(2))
    asked = [f"a/x {number}" for number in range(7)]
    await line.ask(*asked)
    assert await line.end_everything() == asked


async def test_a_host_holds_no_more_than_its_most_and_another_finds_a_slot_at_once() -> None:
    line = Line(FairSlots(4, most=(4, 3)))
    await line.ask(*[f"a/slow {number}" for number in range(12)])
    assert line.began == ["a/slow 0", "a/slow 1", "a/slow 2"]
    await line.ask("a/quick 1", "a/quick 2")
    assert line.began[3:] == ["a/quick 1"]
    await line.end("a/quick 1")
    assert line.began[4:] == ["a/quick 2"]
    await line.close()


@pytest.mark.parametrize(
    ("places", "shares"), [(1, [1]), (2, [1, 1]), (3, [2, 1]), (4, [2, 1, 1]), (6, [3, 2, 1]), (8, [4, 2, 1, 1])]
)
async def test_a_slow_host_has_half_of_the_slots_and_each_further_one_part_of_the_rest(
    places: int, shares: list[int]
) -> None:
    line = Line(FairSlots(places, spares=1))
    for number in range(len(shares)):
        await line.ask(*[f"a/slow{number} {one}" for one in range(12)])
    assert Counter(name.partition(" ")[0] for name in line.began) == {
        f"a/slow{number}": share for number, share in enumerate(shares)
    }
    await line.close()


async def test_what_a_host_gives_back_goes_to_those_who_hold_less_before_it_holds_more_than_half_again() -> None:
    line = Line(FairSlots(6, spares=1))
    await line.ask(*[f"a/slow {number}" for number in range(12)])
    await line.ask("a/late 0", "a/late 1", "a/late 2")
    assert line.began[3:] == ["a/late 0", "a/late 1"]
    await line.end("a/late 0")
    # Two are free: the slow one holds more than that, and the late one fewer.
    assert line.began[5:] == ["a/late 2"]
    await line.end("a/late 1", "a/late 2", "a/slow 0")
    assert line.began[6:] == ["a/slow 3"]
    await line.close()


async def test_twelve_slow_repositories_of_an_environment_leave_another_to_its_own_work() -> None:
    line = Line(FairSlots(4, most=(3, 3)))
    await line.ask(*[f"slow/host{number} 1" for number in range(12)])
    mine = [f"mine/host {number}" for number in range(12)]
    await line.ask(*mine)
    for name in mine:
        await line.end(name)
    assert [name for name in line.began if name.startswith("mine")] == mine
    assert sum(name.startswith("slow") for name in line.began) == 3, "none of the slow ones had ended"
    await line.close()


async def test_a_stream_of_new_names_overtakes_nobody_that_waits() -> None:
    line = Line(FairSlots(1))
    await line.ask("a/first 1", "a/old 1", "a/old 2", "a/old 3")
    for number in range(20):
        await line.ask(f"a/new{number} 1")
        await line.end(line.began[-1])
    # One of the old ones in each round, and a round has one of each new name that came before it.
    assert {"a/old 1", "a/old 2", "a/old 3"} <= set(line.began)
    await line.close()


async def test_a_free_slot_is_not_taken_past_somebody_who_may_have_it() -> None:
    line = Line(FairSlots(1))
    await line.ask("a/x 1", "a/x 2")
    line._ends["a/x 1"].set()
    # Asks in the same turn of the loop in which the slot becomes free.
    await line.ask("b/y 1")
    assert line.began == ["a/x 1", "a/x 2"]
    await line.close()


@pytest.mark.parametrize("given_first", [True, False], ids=["given, then cancelled", "cancelled, then given"])
async def test_a_wait_that_is_cancelled_as_its_turn_comes_passes_the_slot_on(given_first: bool) -> None:
    line = Line(FairSlots(1))
    await line.ask("a/x 1", "a/x 2", "a/x 3")
    slots, waiting = line.slots, line.works["a/x 2"]
    # Both before the waiter can run.
    if not given_first:
        waiting.cancel()
    slots.release("a", "x")
    if given_first:
        waiting.cancel()
    await line.settle()
    assert waiting.cancelled()
    assert line.began == ["a/x 1", "a/x 3"]


PATHS = ("a/x", "a/y", "b/x")


@settings(max_examples=300, deadline=None)
@given(
    places=st.integers(1, 3),
    most=st.sampled_from([(), (1,), (2, 1), (3, 2)]),
    spares=st.sampled_from([None, 0, 1]),
    steps=st.lists(
        st.tuples(st.sampled_from(["ask", "end", "cancel", "turn"]), st.integers(0, 20), st.booleans()), max_size=40
    ),
)
def test_whatever_happens_no_slot_is_lost_or_given_twice_and_none_idles_that_somebody_may_have(
    places: int, most: tuple[int, ...], spares: int | None, steps: list[tuple[str, int, bool]]
) -> None:
    asyncio.run(_any_interleaving(FairSlots(places, most, spares=spares), steps))


async def _any_interleaving(slots: FairSlots, steps: list[tuple[str, int, bool]]) -> None:
    places, most, spares = slots.free, slots._most, slots._spares
    line = Line(slots)
    for number, (step, which, settle) in enumerate(steps):
        alive = [name for name, work in line.works.items() if not work.done()]
        if step == "ask":
            name = f"{PATHS[which % len(PATHS)]} {number}"
            line._ends[name] = asyncio.Event()
            line.works[name] = asyncio.create_task(line._work(name))
        elif step == "turn":
            await asyncio.sleep(0)
        elif alive:
            name = alive[which % len(alive)]
            if step == "end":
                line._ends[name].set()
            else:
                line.works[name].cancel()
        if settle:
            await line.settle()
            _check(line, places, most, spares)
    for work in line.works.values():
        work.cancel()
    await asyncio.gather(*line.works.values(), return_exceptions=True)
    assert slots.free == places
    assert not slots._held
    assert not slots._waiting


def _check(line: Line, places: int, most: tuple[int, ...], spares: int | None) -> None:
    alive = [name for name, work in line.works.items() if not work.done()]
    working = [name for name in alive if name in line.began]
    waiting = [name for name in alive if name not in line.began]
    assert line.slots.free == places - len(working) >= 0
    held: Counter[tuple[str, ...]] = Counter()
    for name in working:
        path = tuple(name.partition(" ")[0].split("/"))
        held.update(path[: end + 1] for end in range(len(path)))

    def full(prefix: tuple[str, ...]) -> bool:
        if len(prefix) - 1 == spares and held[prefix] >= line.slots.free:
            return True
        return len(prefix) <= len(most) and held[prefix] >= most[len(prefix) - 1]

    assert all(count <= most[len(prefix) - 1] for prefix, count in held.items() if len(prefix) <= len(most))
    for name in waiting if line.slots.free else ():
        path = tuple(name.partition(" ")[0].split("/"))
        assert any(full(path[: end + 1]) for end in range(len(path))), f"{name} waits beside a free slot"
