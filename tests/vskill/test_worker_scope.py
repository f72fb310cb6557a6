"""Work that was abandoned in one scope and ends while another is current never sees the environment of the other."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing, contextmanager
from contextvars import copy_context
from typing import Any

import pytest

from vskill.environments import WorkerEnv
from vskill.worker_context import EnvClosed, get_worker_env, refuse_closed_scope, run_with_worker_env

FIRST = WorkerEnv(name="first")
SECOND = WorkerEnv(name="second")


@pytest.fixture(autouse=True)
def _collected_when_a_test_says() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def current() -> str | None:
    """Return the name of the current environment, or the code of the error that tells that there is none."""
    try:
        env = get_worker_env()
    except EnvClosed as error:
        return error.code
    return env.name if env else None


class Node:
    """An object that can be part of a cycle."""

    held: Any = None

    def __init__(self, held: Any = None) -> None:
        self.held = held
        self.itself = self


class Finalized(Node):
    """An object of a cycle whose finalizer asks for the environment."""

    def __init__(self, seen: list[str | None], ask: Callable[[], str | None] = current) -> None:
        super().__init__()
        self.seen = seen
        self.ask = ask

    def __del__(self) -> None:
        self.seen.append(self.ask())


def steps(seen: list[str | None]) -> Generator[int, None, None]:
    try:
        while True:
            yield 1
    finally:
        seen.append(current())


async def asteps(seen: list[str | None]) -> AsyncGenerator[int, None]:
    try:
        while True:
            yield 1
    finally:
        seen.append(current())
        await asyncio.sleep(0)
        seen.append(current())


async def end_of(tasks_before: set[asyncio.Task[Any]]) -> None:
    """Wait for what the event loop has started meanwhile."""
    await asyncio.sleep(0)
    await asyncio.gather(*(asyncio.all_tasks() - tasks_before))


def test_a_finalizer_that_the_collector_runs_is_refused_the_environment_of_the_code_it_interrupts() -> None:
    seen: list[str | None] = []

    def collect() -> str | None:
        gc.collect()
        return current()

    run_with_worker_env(FIRST, lambda: bool(Finalized(seen)))
    assert run_with_worker_env(SECOND, collect) == "second"
    assert seen == ["env_closed"]


def test_reads_of_a_finalizer_that_the_collector_runs_are_refused() -> None:
    seen: list[str | None] = []

    def read() -> str | None:
        with pytest.raises(EnvClosed, match="garbage collector"):
            refuse_closed_scope()
        return "refused"

    run_with_worker_env(FIRST, lambda: bool(Finalized(seen, read)))
    run_with_worker_env(SECOND, lambda: gc.collect() >= 0)
    assert seen == ["refused"]


def test_a_finalizer_may_open_a_scope_of_its_own() -> None:
    seen: list[str | None] = []

    def ask() -> str | None:
        seen.append(run_with_worker_env(FIRST, current))
        return current()

    run_with_worker_env(FIRST, lambda: bool(Finalized(seen, ask)))
    run_with_worker_env(SECOND, lambda: gc.collect() >= 0)
    assert seen == ["first", "env_closed"]


def test_a_collection_in_one_thread_leaves_the_environment_of_another() -> None:
    seen: list[str | None] = []
    collecting, asked = threading.Event(), threading.Event()

    def wait() -> str | None:
        collecting.set()
        assert asked.wait(60)
        return current()

    run_with_worker_env(FIRST, lambda: bool(Finalized(seen, wait)))
    collector = threading.Thread(target=run_with_worker_env, args=(SECOND, gc.collect))
    collector.start()
    assert collecting.wait(60)
    elsewhere = run_with_worker_env(FIRST, current)
    asked.set()
    collector.join()
    assert (elsewhere, seen) == ("first", ["env_closed"])


def test_a_generator_of_a_scope_that_the_collector_ends_is_refused_the_environment() -> None:
    seen: list[str | None] = []

    def abandon() -> None:
        node = Node(steps(seen))
        next(node.held)

    run_with_worker_env(FIRST, abandon)
    run_with_worker_env(SECOND, lambda: gc.collect() >= 0)
    assert seen == ["env_closed"]


@pytest.mark.parametrize("collect", [False, True], ids=["dropped", "collected"])
def test_a_returned_generator_that_is_abandoned_never_ends_in_another_scope(collect: bool) -> None:
    seen: list[str | None] = []
    kept: list[Any] = [run_with_worker_env(FIRST, steps, seen)]
    next(kept[0])
    if collect:
        kept[0] = Node(kept[0])

    def drop() -> str | None:
        kept.clear()
        gc.collect()
        return current()

    assert run_with_worker_env(SECOND, drop) == "second"
    # The collector may end the inner generator before the one that has the scope.
    assert seen in (["first"], ["env_closed"]) if collect else seen == ["first"]


@pytest.mark.parametrize("returned", [False, True], ids=["made in the scope", "returned"])
@pytest.mark.parametrize("collect", [False, True], ids=["dropped", "collected"])
async def test_an_async_generator_that_is_abandoned_ends_in_the_scope_it_began_in(
    returned: bool, collect: bool
) -> None:
    seen: list[str | None] = []
    kept: list[Any] = []

    async def begin() -> None:
        generator = asteps(seen)
        await anext(generator)
        kept.append(generator)

    if returned:
        kept.append(run_with_worker_env(FIRST, asteps, seen))
        await anext(kept[0])
    else:
        await run_with_worker_env(FIRST, begin)
    if collect:
        kept[0] = Node(kept[0])

    async def drop() -> str | None:
        before = asyncio.all_tasks()
        kept.clear()
        gc.collect()
        await end_of(before)
        return current()

    assert await run_with_worker_env(SECOND, drop) == "second"
    # A scope that has ended is closed; that of a returned generator lasts until its end.
    assert seen == (["first"] * 2 if returned else ["env_closed"] * 2)


async def test_an_async_generator_that_is_abandoned_in_its_own_scope_keeps_it() -> None:
    seen: list[str | None] = []

    async def abandon() -> None:
        before = asyncio.all_tasks()
        async for _step in asteps(seen):
            break
        gc.collect()
        await end_of(before)

    await run_with_worker_env(FIRST, abandon)
    assert seen == ["first", "first"]


async def test_async_generators_of_two_scopes_that_begin_in_turns_are_ended_each_in_its_own() -> None:
    seen: dict[str, list[str | None]] = {"first": [], "second": []}
    turns = asyncio.Barrier(2)

    async def batch(name: str) -> None:
        kept = []
        for _ in range(3):
            kept.append(asteps(seen[name]))
            await anext(kept[-1])
            await turns.wait()
        before = asyncio.all_tasks()
        kept.clear()
        await end_of(before)
        await turns.wait()

    await asyncio.gather(run_with_worker_env(FIRST, batch, "first"), run_with_worker_env(SECOND, batch, "second"))
    assert seen == {"first": ["first"] * 6, "second": ["second"] * 6}


async def test_the_event_loop_still_knows_its_async_generators() -> None:
    seen: list[str | None] = []
    generator = asteps(seen)

    async def begin() -> None:
        await anext(generator)

    await run_with_worker_env(FIRST, begin)
    await asyncio.get_running_loop().shutdown_asyncgens()
    assert len(seen) == 2


async def test_a_coroutine_that_is_dropped_in_another_scope_leaves_that_in_place() -> None:
    async def wait() -> None:
        await asyncio.sleep(60)

    dropped = [run_with_worker_env(FIRST, wait)]
    copy_context().run(dropped[0].send, None)

    def drop() -> str | None:
        dropped.clear()
        return current()

    assert run_with_worker_env(SECOND, drop) == "second"
    assert current() is None


def test_a_scope_within_the_steps_of_a_generator_is_closed_by_hand() -> None:
    seen: list[str | None] = []

    @contextmanager
    def watched() -> Iterator[None]:
        try:
            yield
        finally:
            seen.append(current())

    def rows() -> Iterator[int]:
        with watched():
            yield 1
            yield 2

    def second() -> None:
        generator = run_with_worker_env(FIRST, rows)
        next(generator)
        generator.close()  # type: ignore[attr-defined]  # an iterator by its annotation, a generator by nature
        seen.append(current())

    run_with_worker_env(SECOND, second)
    assert seen == ["first", "second"]


async def test_an_async_generator_that_is_closed_by_hand_ends_in_its_scope() -> None:
    seen: list[str | None] = []

    def open_steps() -> AsyncIterator[int]:
        return asteps(seen)

    async def second() -> None:
        async with aclosing(run_with_worker_env(FIRST, open_steps)) as generator:  # type: ignore[type-var]  # see above
            await anext(generator)

    await run_with_worker_env(SECOND, second)
    assert seen == ["first", "first"]
