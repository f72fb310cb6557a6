"""Whether a worker has ended is told of processes of this machine, and of no other."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from submissions.models import QueueMessage
from submissions.queue.database import get_queue
from submissions.queue.worker_names import has_ended, worker_name
from tests.submissions.queue.consumers import Recorder, consumer
from tests.submissions.queue.messages import row, send
from vskill.environments import WorkerEnv

in_thread = sync_to_async
SECONDS = 60
PROGRAM = (
    "import django; django.setup()\n"
    "from submissions.queue.worker_names import worker_name\n"
    "print(worker_name(), flush=True); input()"
)


@contextmanager
def worker_process() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Give a process and its name as a worker."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def other_life(name: str) -> str:
    """Return the name of a worker whose process id belongs to another process by now."""
    known, _dot, _started_at = name.rpartition(".")
    return f"{known}.1"


told = pytest.mark.skipif("@" not in worker_name(), reason="this system does not tell its processes' lives apart")


@told
def test_a_worker_is_gone_once_its_process_is_reaped_or_not() -> None:
    with worker_process() as (process, name):
        assert not has_ended(name)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert has_ended(name)
        process.wait()
        assert has_ended(name)


@told
def test_a_process_that_has_the_id_of_an_earlier_one_is_another() -> None:
    assert not has_ended(worker_name())
    assert has_ended(other_life(worker_name()))


@pytest.mark.parametrize(
    "name",
    [
        "",
        "host:1",
        "host:4194304",
        "host:4194304@0123456789ab.1",
        "host:4194304@.1",
        "host@4194304",
        "host:-1@{machine}.1",
        "host:4194304@{machine}.",
        "host:@{machine}.1",
    ],
)
def test_nothing_is_said_of_what_cannot_be_told_from_here(name: str) -> None:
    machine = worker_name().rpartition("@")[2].partition(".")[0]
    assert not has_ended(name.replace("{machine}", machine))


def hold(env: WorkerEnv, worker: str, *subjects: str) -> None:
    """Let a worker have messages under leases that last."""
    send(env, *subjects)
    rows = QueueMessage.objects.using(env.database)
    with_lease = get_queue(env)
    asyncio.run(with_lease.receive(env.name, len(subjects), worker=worker))
    assert rows.filter(leased_by=worker).count() == len(subjects)


@told
@pytest.mark.django_db(transaction=True)
class TestFreeing:
    async def test_what_a_dead_worker_held_is_free_at_once_and_counts_as_a_crash(self, env: WorkerEnv) -> None:
        queue, dead = get_queue(env), other_life(worker_name())
        await in_thread(hold)(env, dead, "one", "two")
        await in_thread(hold)(env, worker_name(), "of the living")
        await in_thread(hold)(env, "another-machine:1@0123456789ab.1", "of another machine")

        assert await queue.expire_leases(env.name, has_ended) == 2
        assert await queue.expire_leases(env.name, has_ended) == 0
        again = await queue.receive(env.name, 10, worker=worker_name())
        assert [(message.subject, message.crashes) for message in again.messages] == [("one", 1), ("two", 1)]

    async def test_what_crashed_before_waits_for_its_lease(self, env: WorkerEnv) -> None:
        await in_thread(hold)(env, other_life(worker_name()), "one")
        await QueueMessage.objects.all().aupdate(crashes=1)
        assert await get_queue(env).expire_leases(env.name, has_ended) == 0

    async def test_environments_are_freed_one_by_one(self, env: WorkerEnv) -> None:
        await in_thread(hold)(env, other_life(worker_name()), "one")
        assert await get_queue(env).expire_leases("another-environment", has_ended) == 0
        assert (await in_thread(row)(env, "one")).leased_by == other_life(worker_name())

    async def test_a_consumer_takes_over_from_a_dead_one_long_before_the_lease_ends(
        self, env: WorkerEnv, settings: Settings
    ) -> None:
        settings.QUEUE_LEASE, settings.QUEUE_POLL_INTERVAL = 3600.0, 0.05
        await in_thread(hold)(env, other_life(worker_name()), "one")
        done, stop = asyncio.Event(), asyncio.Event()

        async def work(_message: object) -> None:
            done.set()

        running = asyncio.create_task(consumer(env, handlers=Recorder(work).handlers).run(stop))
        async with asyncio.timeout(SECONDS):
            await done.wait()
            stop.set()
            await running
