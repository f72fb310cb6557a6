"""Several environments through one real consumer: each batch sees its own, and each environment gets its turn."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from submissions.queue.base import Message
from submissions.queue.database import get_queue
from submissions.queue.pause import pause
from tests.submissions.queue.consumers import Recorder, consumer, drained
from tests.submissions.queue.messages import send
from vskill.environments import Policy, WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.probe import probe
from vskill.worker_context import get_worker_env, require_worker_env

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async

PUBLIC = WorkerEnv(name="public", policy=Policy(trusted_owners=("git.example.org/public",)))
INTERNAL = WorkerEnv(name="internal", policy=Policy(trusted_owners=("git.example.org/internal",)))
BATCHES = 30
READS_A_MESSAGE = 112


async def test_tc_065_thirty_batches_of_two_environments_in_flight_at_once_see_their_own(env: WorkerEnv) -> None:
    for one in (PUBLIC, INTERNAL):
        subjects = [f"{one.name} {number}" for number in range(BATCHES // 2 * 3)]
        await in_thread(send)(one, *subjects)
        keys = [f"{subject} {number}" for subject in subjects for number in range(READS_A_MESSAGE)]
        entries = [KVEntry(namespace=one.name, key=key, value=f'"{one.name}"') for key in keys]
        await in_thread(KVEntry.objects.using(one.database).bulk_create)(entries)
    all_in_flight = asyncio.Barrier(BATCHES * 3)
    wrong: list[str] = []
    reads: Counter[str] = Counter()

    async def look(expected: str, key: str) -> None:
        outcome = await KVNamespace(KVEntry, require_worker_env()).get(key)
        reads[expected] += 1
        if outcome.value != expected or require_worker_env().policy.trusted_owners != (f"git.example.org/{expected}",):
            wrong.append(f"{expected} saw {outcome.value}")

    async def work(message: Message) -> None:
        await all_in_flight.wait()
        expected = message.subject.split()[0]
        await asyncio.gather(*(look(expected, f"{message.subject} {number}") for number in range(READS_A_MESSAGE)))
        seen_by_thread = await in_thread(get_worker_env)()
        if seen_by_thread is None or seen_by_thread.name != expected:
            wrong.append(f"a thread of {expected} saw {seen_by_thread}")

    probe.reset()
    ended = await drained(PUBLIC, INTERNAL, handlers=Recorder(work).handlers, concurrency=BATCHES)

    assert wrong == []
    assert ended.report.ends == {"done": BATCHES * 3}
    assert reads.total() == BATCHES * 3 * READS_A_MESSAGE > 10_000
    assert set(reads) == {"public", "internal"}
    # Counted inside the KV layer: the reads of all thirty batches were in flight together.
    assert probe.max_reads_in_flight > BATCHES * READS_A_MESSAGE
    assert get_worker_env() is None


async def test_an_environment_with_endless_work_leaves_places_to_the_others(env: WorkerEnv) -> None:
    await in_thread(send)(PUBLIC, *[f"public {number}" for number in range(100)])
    await in_thread(send)(INTERNAL, "internal 1", "internal 2", "internal 3")
    recorder = Recorder()
    running = consumer(PUBLIC, INTERNAL, handlers=recorder.handlers, size=1, concurrency=6, once=True)
    await running.run(asyncio.Event())
    taken = Counter(subject.split()[0] for subject in recorder.seen)
    assert taken == {"public": 3, "internal": 3}


async def test_places_that_one_environment_does_not_need_go_to_the_other(env: WorkerEnv) -> None:
    await in_thread(send)(PUBLIC, *[f"public {number}" for number in range(100)])
    await in_thread(send)(INTERNAL, "internal 1")
    recorder = Recorder()
    running = consumer(PUBLIC, INTERNAL, handlers=recorder.handlers, size=1, concurrency=6, once=True)
    await running.run(asyncio.Event())
    taken = Counter(subject.split()[0] for subject in recorder.seen)
    assert taken == {"public": 5, "internal": 1}


async def test_one_place_is_shared_in_turn(env: WorkerEnv) -> None:
    await in_thread(send)(PUBLIC, *[f"public {number}" for number in range(4)])
    await in_thread(send)(INTERNAL, *[f"internal {number}" for number in range(4)])
    recorder = Recorder()
    await drained(PUBLIC, INTERNAL, handlers=recorder.handlers, size=1, concurrency=1)
    first_half = Counter(subject.split()[0] for subject in recorder.seen[:4])
    assert first_half == {"public": 2, "internal": 2}


async def test_slow_work_that_an_environment_has_more_of_than_there_are_places_does_not_delay_another(
    env: WorkerEnv, settings: Settings
) -> None:
    settings.QUEUE_POLL_INTERVAL = 0.01
    await in_thread(send)(PUBLIC, *[f"public {number}" for number in range(12)])
    places_taken, mine_done, stop = asyncio.Barrier(4), asyncio.Event(), asyncio.Event()
    done: list[str] = []

    async def work(message: Message) -> None:
        if message.environment == PUBLIC.name:
            await places_taken.wait()
            await asyncio.Event().wait()
        done.append(message.subject)
        if len(done) == 5:
            mine_done.set()

    settings.QUEUE_SHUTDOWN_GRACE = 0.0
    running = consumer(PUBLIC, INTERNAL, handlers=Recorder(work).handlers, size=1, concurrency=4)
    consuming = asyncio.create_task(running.run(stop))
    async with asyncio.timeout(30):
        # Three of the public ones hold what they may, and never end.
        await places_taken.wait()
        await in_thread(send)(INTERNAL, *[f"internal {number}" for number in range(5)])
        await mine_done.wait()
    stop.set()
    await consuming
    assert sorted(done) == [f"internal {number}" for number in range(5)]


async def test_a_consumer_with_fewer_places_than_environments_serves_all_of_them(env: WorkerEnv) -> None:
    third = WorkerEnv(name="third")
    for one in (PUBLIC, INTERNAL, third):
        await in_thread(send)(one, *[f"{one.name} {number}" for number in range(3)])
    recorder = Recorder()
    ended = await drained(PUBLIC, INTERNAL, third, handlers=recorder.handlers, size=1, concurrency=2)
    assert ended.report.ends == {"done": 9}
    assert {subject.split()[0] for subject in recorder.seen[:3]} == {"public", "internal", "third"}


async def test_a_paused_environment_does_not_hold_up_the_others(env: WorkerEnv) -> None:
    await in_thread(send)(PUBLIC, "public 1")
    await in_thread(send)(INTERNAL, "internal 1")
    await in_thread(pause)(INTERNAL, who="operator", why="moving house")
    recorder = Recorder()
    await drained(PUBLIC, INTERNAL, handlers=recorder.handlers)
    assert recorder.seen == ["public 1"]
    assert (await get_queue(INTERNAL).status("internal")).waiting == 1
