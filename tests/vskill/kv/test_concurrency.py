"""Reads in flight, selects at once, and what happens to those who stop waiting; counted inside the layer."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import override_settings

from tests.vskill.kv.database_layer import Execute, around_each_statement, blocked_readers, fill
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome, Status
from vskill.kv.probe import probe
from vskill.kv.threads import readers
from vskill.worker_context import EnvClosed, get_worker_env, run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def namespace(env: WorkerEnv) -> KVNamespace:
    return KVNamespace(KVEntry, env)


@pytest.fixture(autouse=True)
def _counters_start_anew() -> Iterator[None]:
    probe.reset()
    yield
    # A select that nobody waits for any more (a reading that was left early) still ends by itself.
    readers.close()
    assert probe.reads_in_flight == 0
    assert probe.selects_in_flight == 0


def keys_of(count: int) -> list[str]:
    return [f"key-{number:05}" for number in range(count)]


async def test_n_reads_at_once_are_n_reads_in_flight_and_few_selects(namespace: KVNamespace) -> None:
    keys = keys_of(3000)
    outcomes = await asyncio.gather(*(namespace.get(key) for key in keys))
    assert Counter(outcome.status for outcome in outcomes) == {Status.MISSING: 3000}
    assert (probe.reads, probe.max_reads_in_flight) == (3000, 3000)
    assert probe.selects == 6


@pytest.mark.parametrize("workers", [2, 4])
async def test_selects_overlap_up_to_the_number_of_readers_and_never_beyond(
    namespace: KVNamespace, workers: int
) -> None:
    # Each select waits for as many others as there are threads: fewer at once would wait in vain.
    together = threading.Barrier(workers, timeout=60)

    def wait_for_the_others(execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if sql.startswith("SELECT"):
            together.wait()
        return execute(sql, params, many, context)

    with override_settings(KV_READ_WORKERS=workers), around_each_statement(wait_for_the_others):
        await asyncio.gather(*(namespace.get(key) for key in keys_of(500 * workers * 3)))
        assert (probe.selects, probe.max_selects_in_flight) == (workers * 3, workers)
        probe.reset()
        count = 0
        async for _outcome in namespace.get_many(keys_of(500 * workers * 2), window=500 * workers):
            count += 1
    assert count == 500 * workers * 2
    assert (probe.selects, probe.max_selects_in_flight) == (workers * 2, workers)


@pytest.mark.parametrize(("window", "in_flight"), [(1, 1), (100, 100), (2000, 2000), (2300, 2000)])
async def test_get_many_has_a_window_of_reads_in_flight_and_never_more(
    namespace: KVNamespace, window: int, in_flight: int
) -> None:
    count = 5000 if window >= 100 else 50
    seen = [outcome.key async for outcome in namespace.get_many(keys_of(count), window=window)]
    assert seen == keys_of(count)
    assert (probe.reads, probe.max_reads_in_flight) == (count, in_flight)


async def test_get_many_asks_for_keys_only_as_far_as_its_window_reaches(namespace: KVNamespace) -> None:
    asked: list[str] = []

    def keys() -> Iterator[str]:
        for key in keys_of(100_000):
            asked.append(key)
            yield key

    async for outcome in namespace.get_many(keys(), window=1000):
        if outcome.key == "key-00999":
            break
    assert len(asked) <= 3000


async def test_a_read_that_gets_no_answer_is_timed_out_and_never_sent(namespace: KVNamespace) -> None:
    with override_settings(KV_READ_TIMEOUT=0.05), blocked_readers():
        outcomes = await asyncio.gather(*(namespace.get(key) for key in keys_of(600)))
        many = [outcome async for outcome in namespace.get_many(keys_of(600))]
        assert Counter(outcome.status for outcome in [*outcomes, *many]) == {Status.TIMED_OUT: 1200}
        assert outcomes[0].detail == "no answer within 0.05 s"
    # The threads are free again, and find nothing that somebody still wants.
    readers.close()
    assert probe.selects == 0


async def test_one_caller_may_wait_for_less_time_than_the_others(namespace: KVNamespace) -> None:
    await namespace.put("key", 1)
    with blocked_readers():
        patient = asyncio.create_task(namespace.get("key"))
        hasty = await namespace.get("key", timeout=0.01)
        assert (hasty.status, hasty.detail) == (Status.TIMED_OUT, "no answer within 0.01 s")
        assert not patient.done()
    assert (await patient).value == 1


async def test_a_caller_that_is_cancelled_takes_its_answer_from_nobody_else(namespace: KVNamespace) -> None:
    await namespace.put("key", 1)
    with blocked_readers():
        tasks = [asyncio.create_task(namespace.get("key")) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.wait(tasks[:1])
    assert tasks[0].cancelled()
    assert [(await task).value for task in tasks[1:]] == [1, 1]


async def test_nothing_is_read_for_callers_that_have_all_gone(namespace: KVNamespace) -> None:
    with blocked_readers():
        tasks = [asyncio.create_task(namespace.get(key)) for key in keys_of(2000)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)
    readers.close()
    assert probe.selects == 0


async def test_nothing_is_read_ahead_for_a_consumer_that_stopped(namespace: KVNamespace) -> None:
    reading = namespace.get_many(keys_of(5000), window=2000)
    with blocked_readers():
        first = asyncio.ensure_future(anext(reading))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
    readers.close()
    assert probe.selects == 0


def test_a_loop_that_ends_while_reads_are_under_way_leaves_no_noise_and_is_freed(
    namespace: KVNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def main() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        tasks = [asyncio.create_task(namespace.get(key)) for key in keys_of(10)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        del tasks

    with blocked_readers():
        asyncio.run(main())
    readers.close()
    gc.collect()
    assert caplog.records == []
    assert loops[0]() is None


async def test_a_mistake_of_ours_is_raised_by_every_read_of_its_chunk(
    namespace: KVNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(row: object) -> Outcome:
        raise LookupError("a mistake")

    await namespace.put("key", 1)
    monkeypatch.setattr("vskill.kv.reader.decode_row", broken)
    outcomes = await asyncio.gather(namespace.get("key"), namespace.get("other"), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [LookupError, LookupError]
    with pytest.raises(LookupError):
        _ = [outcome async for outcome in namespace.get_many(["key"])]


async def test_work_that_outlived_its_environment_reads_and_writes_nothing(
    namespace: KVNamespace, env: WorkerEnv
) -> None:
    ended = asyncio.Event()

    async def outliving() -> list[str]:
        await ended.wait()
        refused = []
        for attempt in (namespace.get("key"), namespace.put("key", 1), namespace.delete("key"), namespace.list()):
            with pytest.raises(EnvClosed) as caught:
                await attempt
            refused.append(caught.value.code)
        with pytest.raises(EnvClosed):
            _ = [outcome async for outcome in namespace.get_many(["key"])]
        return refused

    async def batch() -> asyncio.Task[list[str]]:
        return asyncio.create_task(outliving())

    task = await run_with_worker_env(env, batch)
    ended.set()
    assert await task == ["env_closed"] * 4
    assert (await namespace.get("key")).status is Status.MISSING


async def test_a_thread_of_the_pool_is_in_the_environment_of_its_caller(env: WorkerEnv) -> None:
    async def current() -> str | None:
        found = await readers.run(get_worker_env)
        return found.name if found else None

    assert await current() is None
    assert await run_with_worker_env(env, current) == "default"
    other = WorkerEnv(name="other")
    seen = await asyncio.gather(*(run_with_worker_env(one, current) for one in [env, other] * 20))
    assert seen == ["default", "other"] * 20


def test_a_read_inside_a_transaction_sees_what_it_wrote(namespace: KVNamespace) -> None:
    fill(namespace, ["key"])
    assert namespace.get_sync("key").value == "key"


def test_several_loops_read_at_once(namespace: KVNamespace) -> None:
    fill(namespace, keys_of(100))
    seen: list[int] = []

    async def read() -> None:
        outcomes = await asyncio.gather(*(namespace.get(key) for key in keys_of(100)))
        seen.append(sum(outcome.found for outcome in outcomes))

    threads = [threading.Thread(target=async_to_sync(read)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [100] * 5
