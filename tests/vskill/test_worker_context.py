"""The scope of a worker environment: what is current outside, inside, after it, and within one another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.core.management import call_command
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.urls import path

from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.management.environment_command import EnvironmentCommand
from vskill.worker_context import (
    EnvClosed,
    WorkerEnvMissing,
    get_worker_env,
    require_worker_env,
    run_with_worker_env,
)

OUTER = WorkerEnv(name="outer")
INNER = WorkerEnv(name="inner")


def current() -> str | None:
    env = get_worker_env()
    return env.name if env else None


async def acurrent() -> str | None:
    await asyncio.sleep(0)
    return current()


async def view(request: HttpRequest) -> HttpResponse:
    return HttpResponse(await acurrent())


def plain_view(request: HttpRequest) -> HttpResponse:
    return HttpResponse(current())


urlpatterns = [path("env", view), path("plain", plain_view)]


async def test_tc_060_there_is_no_environment_outside_a_scope() -> None:
    assert current() is None
    assert await asyncio.create_task(acurrent()) is None
    assert await sync_to_async(current)() is None
    assert await asyncio.to_thread(current) is None
    with pytest.raises(WorkerEnvMissing, match="run_with_worker_env"):
        require_worker_env()


async def test_tc_061_the_environment_is_there_inside_a_scope() -> None:
    assert run_with_worker_env(OUTER, current) == "outer"
    assert await run_with_worker_env(OUTER, acurrent) == "outer"
    assert run_with_worker_env(OUTER, require_worker_env) is OUTER


def test_arguments_and_result_pass_through_a_scope() -> None:
    assert run_with_worker_env(OUTER, lambda *args, **kwargs: (args, kwargs), 1, two=2) == ((1,), {"two": 2})


async def test_tc_062_nothing_is_left_after_a_return() -> None:
    run_with_worker_env(OUTER, current)
    assert current() is None
    await run_with_worker_env(OUTER, acurrent)
    assert current() is None


async def test_tc_062_nothing_is_left_after_an_exception() -> None:
    def fail() -> None:
        raise LookupError(current())

    async def fail_later() -> None:
        raise LookupError(await acurrent())

    with pytest.raises(LookupError, match="outer"):
        run_with_worker_env(OUTER, fail)
    assert current() is None
    with pytest.raises(LookupError, match="outer"):
        await run_with_worker_env(OUTER, fail_later)
    assert current() is None


async def test_tc_062_nothing_is_left_after_a_cancellation() -> None:
    seen: list[str | None] = []
    begun = asyncio.Event()

    async def wait_for_ever() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def caller() -> None:
        try:
            await run_with_worker_env(OUTER, wait_for_ever)
        finally:
            seen.append(current())

    task = asyncio.create_task(caller())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == [None]
    assert current() is None


async def test_a_scope_that_is_cancelled_before_its_first_step_leaves_nothing_behind() -> None:
    task = asyncio.create_task(run_with_worker_env(OUTER, acurrent))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_tc_063_nested_scopes_see_their_own_and_the_outer_is_back_afterwards() -> None:
    def inner() -> str | None:
        return run_with_worker_env(INNER, current)

    async def outer() -> list[str | None]:
        seen = [await acurrent(), await run_with_worker_env(INNER, acurrent), await acurrent()]
        seen += [run_with_worker_env(INNER, current), current()]
        seen += [await sync_to_async(inner)(), current()]
        seen += [await asyncio.to_thread(inner), current()]
        return seen

    seen = await run_with_worker_env(OUTER, outer)
    assert seen == ["outer", "inner", "outer", "inner", "outer", "inner", "outer", "inner", "outer"]
    assert current() is None


def test_tc_063_the_outer_scope_is_back_after_the_inner_one_failed() -> None:
    def fail() -> None:
        raise LookupError(current())

    def outer() -> str | None:
        with pytest.raises(LookupError, match="inner"):
            run_with_worker_env(INNER, fail)
        return current()

    assert run_with_worker_env(OUTER, outer) == "outer"


def test_tc_063_a_scope_within_a_thread_of_an_outer_scope_gives_the_outer_one_back() -> None:
    async def outer() -> list[str | None]:
        def in_thread() -> list[str | None]:
            inner = run_with_worker_env(INNER, lambda: async_to_sync(acurrent)())
            return [current(), inner, current()]

        return await asyncio.to_thread(in_thread)

    async def main() -> list[str | None]:
        return await run_with_worker_env(OUTER, outer)

    assert async_to_sync(main)() == ["outer", "inner", "outer"]


class Command(EnvironmentCommand):
    """Say which environment is current."""

    seen: list[str | None]

    async def work(self, env: WorkerEnv, options: object) -> None:
        self.seen.append(await acurrent())


@pytest.mark.django_db(transaction=True)
@pytest.mark.urls(__name__)
def test_tc_064_a_scope_is_the_same_for_a_function_a_coroutine_a_view_and_a_command(
    client: Client, async_client: AsyncClient
) -> None:
    command = Command()
    command.seen = []
    call_command(command, environment="default")
    default = WorkerEnv(name="default")

    async def answer() -> str:
        return (await async_client.get("/env")).content.decode()

    async def coroutine() -> str | None:
        return await run_with_worker_env(default, acurrent)

    assert {
        "function": run_with_worker_env(default, current),
        "coroutine": async_to_sync(coroutine)(),
        "async view": async_to_sync(answer)(),
        "async view below WSGI": client.get("/env").content.decode(),
        "view": client.get("/plain").content.decode(),
        "command": command.seen,
        "afterwards": current(),
    } == {
        "function": "default",
        "coroutine": "default",
        "async view": "default",
        "async view below WSGI": "default",
        "view": "default",
        "command": ["default"],
        "afterwards": None,
    }


async def test_work_that_outlives_its_batch_is_told_that_the_environment_is_closed() -> None:
    batch_ended = asyncio.Event()

    async def outliving() -> str | None:
        before = current()
        await batch_ended.wait()
        with pytest.raises(EnvClosed, match="'outer' has ended"):
            get_worker_env()
        return before

    async def batch() -> asyncio.Task[str | None]:
        task = asyncio.create_task(outliving())
        await asyncio.sleep(0)
        return task

    task = await run_with_worker_env(OUTER, batch)
    # The next batch is running meanwhile, and its environment must not be seen by the work of the last one.
    assert await run_with_worker_env(INNER, acurrent) == "inner"
    batch_ended.set()
    assert await task == "outer"


async def test_a_thread_that_outlives_its_batch_is_told_that_the_environment_is_closed() -> None:
    batch_ended = threading.Event()

    def outliving() -> str:
        batch_ended.wait(10)
        with pytest.raises(EnvClosed) as caught:
            get_worker_env()
        return caught.value.code

    async def batch() -> list[asyncio.Task[str]]:
        waiting = [sync_to_async(outliving, thread_sensitive=False)(), asyncio.to_thread(outliving)]
        tasks = [asyncio.create_task(one) for one in waiting]
        await asyncio.sleep(0)
        return tasks

    tasks = await run_with_worker_env(OUTER, batch)
    batch_ended.set()
    assert await asyncio.gather(*tasks) == ["env_closed", "env_closed"]


async def test_a_callback_that_outlives_its_batch_is_told_that_the_environment_is_closed() -> None:
    called: asyncio.Future[str | VskillError | None] = asyncio.get_running_loop().create_future()

    def callback() -> None:
        try:
            called.set_result(current())
        except EnvClosed as error:
            called.set_result(error)

    def batch() -> None:
        asyncio.get_running_loop().call_soon(callback)

    run_with_worker_env(OUTER, batch)
    assert isinstance(await called, EnvClosed)


async def test_a_task_that_a_plain_function_started_has_the_scope_while_it_is_awaited() -> None:
    assert await run_with_worker_env(OUTER, lambda: asyncio.create_task(acurrent())) == "outer"


async def test_a_generator_has_the_scope_in_each_of_its_steps_and_not_between_them() -> None:
    closed: list[str | None] = []

    def steps() -> Iterator[str | None]:
        try:
            while True:
                yield current()
        finally:
            closed.append(current())

    generator = run_with_worker_env(OUTER, steps)
    seen: list[str | None] = []
    for step in generator:
        seen += [step, current(), run_with_worker_env(INNER, current)]
        if len(seen) == 6:
            break
    generator.close()  # type: ignore[attr-defined]  # an iterator by its annotation, a generator by nature
    assert seen == ["outer", None, "inner"] * 2
    assert closed == ["outer"]


async def test_an_asynchronous_generator_has_the_scope_in_each_of_its_steps_and_not_between_them() -> None:
    closed: list[str | None] = []

    async def steps() -> AsyncIterator[str | None]:
        try:
            for _ in range(2):
                yield await acurrent()
        finally:
            closed.append(current())

    seen: list[str | None] = []
    async for step in run_with_worker_env(OUTER, steps):
        seen += [step, current(), await run_with_worker_env(INNER, acurrent)]
    assert seen == ["outer", None, "inner"] * 2
    assert closed == ["outer"]
