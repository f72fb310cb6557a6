"""What a function leaves to be computed later keeps the scope of the function, or is refused."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.http import HttpResponse

from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.models import KVEntry
from vskill.worker_context import get_worker_env, run_with_worker_env
from vskill.worker_results import ResultUnfinished

OUTER = WorkerEnv(name="outer")
INNER = WorkerEnv(name="inner")


def current(_item: object = None) -> str | None:
    env = get_worker_env()
    return env.name if env else None


async def acurrent(_item: object = None) -> str | None:
    await asyncio.sleep(0)
    return current()


class Steps:
    """An iterator that is no generator."""

    left = 2

    def __iter__(self) -> Steps:
        return self

    def __next__(self) -> str | None:
        if not self.left:
            raise StopIteration
        self.left -= 1
        return current()


class AsyncSteps:
    """An asynchronous iterator that is no generator."""

    left = 2
    ended_in: list[str | None]

    def __init__(self) -> None:
        self.ended_in = []

    def __aiter__(self) -> AsyncSteps:
        return self

    async def __anext__(self) -> str | None:
        if not self.left:
            raise StopAsyncIteration
        self.left -= 1
        return await acurrent()

    async def aclose(self) -> None:
        self.ended_in.append(await acurrent())


class Waiting:
    """An awaitable that is no coroutine."""

    def __await__(self) -> Generator[Any, None, str | None]:
        return acurrent().__await__()


class Service:
    """Bound methods and objects that are called like a coroutine function."""

    async def name(self) -> str | None:
        return await acurrent()

    async def __call__(self) -> str | None:
        return await acurrent()


@contextmanager
def managed() -> Iterator[str | None]:
    yield current()


@asynccontextmanager
async def amanaged() -> AsyncIterator[str | None]:
    yield current()


LAZY: dict[str, Callable[[], Iterable[str | None]]] = {
    "map": lambda: map(current, range(2)),
    "filter": lambda: filter(lambda name: current() == name, ["outer", "inner", "outer"]),
    "zip": lambda: map("".join, zip(map(str, map(current, range(2))), ["", ""], strict=True)),
    "chain": lambda: itertools.chain.from_iterable([current()] for _ in range(2)),
    "starmap": lambda: itertools.starmap(current, [(1,), (2,)]),
    "an object with __next__": Steps,
}


@pytest.mark.parametrize("name", LAZY)
def test_an_iterator_computes_each_item_in_the_scope(name: str) -> None:
    def inside() -> list[str | None]:
        return [item for item in run_with_worker_env(OUTER, LAZY[name]) if current() == "inner"]

    assert run_with_worker_env(INNER, inside) == ["outer", "outer"]


@pytest.mark.parametrize("name", LAZY)
async def test_an_iterator_of_a_coroutine_function_computes_each_item_in_the_scope(name: str) -> None:
    async def func() -> Iterable[str | None]:
        return LAZY[name]()

    async def inside() -> list[str | None]:
        return [item for item in await run_with_worker_env(OUTER, func) if current() == "inner"]

    assert await run_with_worker_env(INNER, inside) == ["outer", "outer"]


async def test_an_object_with_anext_computes_each_item_in_the_scope_and_is_closed_in_it() -> None:
    made = AsyncSteps()

    async def inside() -> list[str | None]:
        return [item async for item in run_with_worker_env(OUTER, lambda: made) if current() == "inner"]

    assert await run_with_worker_env(INNER, inside) == ["outer", "outer"]
    assert made.ended_in == ["outer"]


async def test_an_asynchronous_generator_of_a_coroutine_function_keeps_the_scope() -> None:
    async def steps() -> AsyncIterator[str | None]:
        yield await acurrent()

    async def func() -> AsyncIterator[str | None]:
        return steps()

    async def inside() -> list[str | None]:
        return [item async for item in await run_with_worker_env(OUTER, func)]

    assert await run_with_worker_env(INNER, inside) == ["outer"]


async def test_an_awaitable_of_a_coroutine_function_keeps_the_scope() -> None:
    async def func() -> Awaitable[str | None]:
        return acurrent()

    async def inside() -> str | None:
        return await (await run_with_worker_env(OUTER, func))

    assert await run_with_worker_env(INNER, inside) == "outer"


@pytest.mark.parametrize(
    "func",
    [
        partial(acurrent),
        partial(partial(acurrent), 1),
        Service().name,
        Service(),
        Waiting,
        lambda: asyncio.ensure_future(acurrent()),
        lambda: asyncio.gather(acurrent()),
    ],
    ids=["partial", "partial of partial", "bound", "callable", "awaitable", "task", "gather"],
)
async def test_whatever_is_awaited_has_the_scope(func: Callable[[], Awaitable[Any]]) -> None:
    async def inside() -> Any:
        return await run_with_worker_env(OUTER, func)

    assert await run_with_worker_env(INNER, inside) in ("outer", ["outer"])


def test_a_generator_receives_what_is_sent_and_thrown_and_returns_its_value() -> None:
    def talk() -> Generator[Any, Any, str]:
        heard = yield "ready"
        try:
            yield heard, current()
        except LookupError as error:
            yield str(error), current()
        return "done"

    generator: Any = run_with_worker_env(OUTER, talk)
    assert next(generator) == "ready"
    assert generator.send("hello") == ("hello", "outer")
    assert generator.throw(LookupError("oh")) == ("oh", "outer")
    with pytest.raises(StopIteration) as stopped:
        next(generator)
    assert stopped.value.value == "done"


async def test_an_asynchronous_generator_receives_what_is_sent_and_thrown() -> None:
    async def talk() -> AsyncGenerator[Any, Any]:
        heard = yield "ready"
        try:
            yield heard, await acurrent()
        except LookupError as error:
            yield str(error), await acurrent()

    generator: Any = run_with_worker_env(OUTER, talk)
    assert await anext(generator) == "ready"
    assert await generator.asend("hello") == ("hello", "outer")
    assert await generator.athrow(LookupError("oh")) == ("oh", "outer")
    assert [item async for item in generator] == []


REFUSED: dict[str, Callable[[], Any]] = {
    "a list that holds a coroutine": lambda: [1, acurrent()],
    "a tuple that holds a generator": lambda: (1, (item for item in "ab")),
    "a dict that holds a map": lambda: {"names": map(current, "ab")},
    "a list that holds a Waiting": lambda: [Waiting()],
    "a set that holds a AsyncSteps": lambda: {AsyncSteps()},
    "a _GeneratorContextManager": managed,
    "a _AsyncGeneratorContextManager": amanaged,
    "a list that holds a _GeneratorContextManager": lambda: [managed()],
    "a KVEntryQuerySet": lambda: KVEntry.objects.all(),
    "a list that holds a KVEntryQuerySet": lambda: [KVEntry.objects.all()],
}


@pytest.mark.parametrize("found", REFUSED)
async def test_what_cannot_keep_the_scope_is_refused_with_what_to_do(found: str) -> None:
    async def func() -> Any:
        return REFUSED[found]()

    with pytest.raises(ResultUnfinished) as caught:
        run_with_worker_env(OUTER, REFUSED[found])
    with pytest.raises(ResultUnfinished) as caught_later:
        await run_with_worker_env(OUTER, func)
    for error in (caught.value, caught_later.value):
        assert isinstance(error, VskillError)
        assert error.code == "result_unfinished"
        assert f"returned {found}, which would be computed after the scope of environment 'outer'" in str(error)
        assert "Compute the result inside the function" in str(error)
    assert current() is None


async def test_tasks_in_a_list_run_in_a_context_of_their_own() -> None:
    async def func() -> list[asyncio.Task[str | None]]:
        tasks = [asyncio.create_task(acurrent())]
        await asyncio.wait(tasks)
        return tasks

    [task] = await run_with_worker_env(OUTER, func)
    assert task.result() == "outer"


def test_values_that_are_complete_are_returned_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with (tmp_path / "file").open() as file:
        complete: list[Any] = [None, 0, "text", [1, [2]], {"a": {}}, range(3), HttpResponse(), file, [file], current]
        for value in complete:
            assert run_with_worker_env(OUTER, lambda value=value: value) is value
        assert file.read() == "text"


@pytest.mark.django_db
def test_a_queryset_that_was_read_is_returned_as_it_is() -> None:
    def read() -> Any:
        entries = KVEntry.objects.all()
        assert len(entries) == 0
        return entries

    assert list(run_with_worker_env(WorkerEnv(name="default"), read)) == []
