"""Thirty batches at once, each in an environment of its own, on every way that work takes through a process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction

from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.worker_context import require_worker_env, run_with_worker_env

BATCHES: Final = 30
READS: Final = 334
KEYS: Final = 12
ENVIRONMENTS: Final = [WorkerEnv(name=f"batch-{number:02}") for number in range(BATCHES)]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _an_entry_of_each_key_in_each_environment() -> None:
    with transaction.atomic():
        for env in ENVIRONMENTS:
            for number in range(KEYS):
                KVNamespace(KVEntry, env).put_sync(f"key-{number}", {"belongsTo": env.name})


def read_here(key: str) -> str:
    """Return the owner of ``key`` in the environment that is current where this runs."""
    owner: str = KVNamespace(KVEntry, require_worker_env()).get_sync(key).require()["belongsTo"]
    return owner


def read_in_thread(key: str) -> str:
    try:
        return read_here(key)
    finally:
        # A thread of asyncio's own keeps its connection for ever otherwise.
        connections.close_all()


async def read(key: str) -> str:
    owner: str = (await KVNamespace(KVEntry, require_worker_env()).get(key)).require()["belongsTo"]
    return owner


async def by_await(key: str) -> str:
    await asyncio.sleep(0)
    return await read(key)


async def by_create_task(key: str) -> str:
    return await asyncio.create_task(read(key))


async def by_gather(key: str) -> str:
    first, second = await asyncio.gather(read(key), by_await(key))
    assert first == second
    return first


async def by_task_group(key: str) -> str:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(read(key)), group.create_task(by_await(key))]
    owners = {task.result() for task in tasks}
    assert len(owners) == 1
    return owners.pop()


async def by_sync_to_async(key: str) -> str:
    return await sync_to_async(read_here)(key)


async def by_sync_to_async_in_any_thread(key: str) -> str:
    return await sync_to_async(read_in_thread, thread_sensitive=False)(key)


async def by_to_thread(key: str) -> str:
    return await asyncio.to_thread(read_in_thread, key)


async def by_async_generator(key: str) -> str:
    async def owners() -> AsyncIterator[str]:
        yield await read(key)
        await asyncio.sleep(0)
        yield await read(key)

    seen = {owner async for owner in owners()}
    assert len(seen) == 1
    return seen.pop()


async def by_callback(key: str) -> str:
    loop = asyncio.get_running_loop()
    started: asyncio.Future[asyncio.Task[str]] = loop.create_future()
    loop.call_soon(lambda: started.set_result(asyncio.create_task(read(key))))
    return await (await started)


async def by_done_callback(key: str) -> str:
    loop = asyncio.get_running_loop()
    started: asyncio.Future[asyncio.Task[str]] = loop.create_future()
    asyncio.create_task(asyncio.sleep(0)).add_done_callback(
        lambda _done: started.set_result(asyncio.create_task(read(key)))
    )
    return await (await started)


Way = Callable[[str], Awaitable[str]]
WAYS: Final[list[Way]] = [
    by_await,
    by_create_task,
    by_gather,
    by_task_group,
    by_sync_to_async,
    by_sync_to_async_in_any_thread,
    by_to_thread,
    by_async_generator,
    by_callback,
    by_done_callback,
]


async def owners_seen(env: WorkerEnv, ways: list[Way], reads: int) -> Counter[tuple[str, str]]:
    """Return how often a batch of ``env`` saw the entry of which environment, each way in its turn."""

    async def batch() -> Counter[tuple[str, str]]:
        seen: Counter[tuple[str, str]] = Counter()
        for number in range(reads):
            seen[env.name, await ways[number % len(ways)](f"key-{number % KEYS}")] += 1
        return seen

    return await run_with_worker_env(env, batch)


async def thirty_batches(ways: list[Way], reads: int) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    for seen in await asyncio.gather(*(owners_seen(env, ways, reads) for env in ENVIRONMENTS)):
        counted += seen
    return counted


async def test_tc_058_none_of_ten_thousand_reads_of_thirty_batches_sees_another_environment() -> None:
    counted = await thirty_batches(WAYS, READS)
    assert counted == {(env.name, env.name): READS for env in ENVIRONMENTS}
    assert counted.total() > 10_000


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_tc_065_thirty_batches_at_once_keep_their_environments(way: Way) -> None:
    assert await thirty_batches([way], KEYS) == {(env.name, env.name): KEYS for env in ENVIRONMENTS}
