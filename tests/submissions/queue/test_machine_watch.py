"""A fault of the worker's own machine costs no message an attempt, and the worker takes nothing until it is over."""

from __future__ import annotations

import asyncio
import errno
import os
from time import monotonic

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from pytest_django import Settings

from submissions.models import QueueMessage
from submissions.queue import machine_watch
from submissions.queue.base import Message
from submissions.queue.database import DatabaseQueue, get_queue
from submissions.queue.leases import LeaseKeeper
from submissions.queue.machine_watch import FAULTS_FORGIVEN, MachineWatch, probe
from submissions.queue.settlement import handle_message
from tests.submissions.queue.consumers import Recorder, consumer
from tests.submissions.queue.messages import let_leases_end, receive_one, row, send
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_a_worker_whose_disk_is_full_gives_all_back_uncounted_and_takes_nothing_until_its_probe_passes(
    env: WorkerEnv, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.QUEUE_POLL_INTERVAL = 0.01
    monkeypatch.setattr(machine_watch, "FIRST_PAUSE", 0.02)
    subjects = [f"subject {number}" for number in range(20)]
    await in_thread(send)(env, *subjects)
    full, probes = True, 0

    async def work(_message: Message) -> None:
        if full:
            raise full_disk()

    async def look() -> None:
        nonlocal full, probes
        probes += 1
        assert [row async for row in QueueMessage.objects.values_list("errors", "crashes")] == [(0, 0)] * 20
        if probes < 3:
            raise full_disk()
        full = False

    recorder = Recorder(work)
    running = consumer(env, handlers=recorder.handlers, drain=True, machine=MachineWatch(look))
    await running.run(asyncio.Event())

    assert probes == 3
    assert recorder.given_up == []
    assert not await QueueMessage.objects.aexists()
    assert len(recorder.seen) <= 2 * len(subjects), "work was taken while the machine was at fault"
    assert running.fault == ""


async def test_work_that_arrives_when_a_fault_is_known_is_given_back_and_not_begun(env: WorkerEnv) -> None:
    await in_thread(send)(env, "one")
    message, recorder, machine = await receive_one(env), Recorder(), MachineWatch()
    machine.report("No space left on device")

    end = await handle_message(message, get_queue(env), recorder.handlers, LeaseKeeper(), monotonic(), machine)

    assert (end, recorder.seen) == ("given back", [])
    after = await in_thread(row)(env, "one")
    assert (after.lease_token, after.errors, after.crashes) == ("", 0, 0)


async def test_a_consumer_says_what_ails_it(
    env: WorkerEnv, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.QUEUE_POLL_INTERVAL = 0.01
    monkeypatch.setattr(machine_watch, "FIRST_PAUSE", 0.0)
    await in_thread(send)(env, "one")
    stop = asyncio.Event()

    async def work(_message: Message) -> None:
        raise full_disk()

    async def look() -> None:
        stop.set()
        raise full_disk()

    running = consumer(env, handlers=Recorder(work).handlers, machine=MachineWatch(look))
    await running.run(stop)
    assert "No space left on device" in running.fault


async def test_a_message_that_meets_a_fault_again_and_again_while_the_probe_passes_is_counted(env: WorkerEnv) -> None:
    async def fine() -> None:
        return

    machine = MachineWatch(fine)
    await in_thread(send)(env, "one")
    message = await receive_one(env)
    innocent = [machine.is_innocent(message) for _ in range(FAULTS_FORGIVEN + 1)]
    assert innocent == [True] * FAULTS_FORGIVEN + [False]


async def test_the_probe_passes_on_this_machine() -> None:
    await probe()


class Away(DatabaseQueue):
    """A queue whose database is away for a while."""

    away = True

    async def release(self, message: Message) -> bool:
        if self.away:
            raise OperationalError("the database has gone")
        return await super().release(message)

    async def surrender(self, message: Message) -> bool:
        if self.away:
            raise OperationalError("the database has gone")
        return await super().surrender(message)


async def lost_in_an_outage(env: WorkerEnv, queue: DatabaseQueue, keeper: LeaseKeeper) -> None:
    """Let work on a message be stopped while its database is away."""

    async def work(_message: Message) -> None:
        raise full_disk()

    message = await receive_one(env)
    end = await handle_message(message, queue, Recorder(work).handlers, keeper, monotonic(), MachineWatch())
    assert end == "unsettled"


async def test_what_could_not_be_given_back_in_an_outage_is_given_back_after_it(env: WorkerEnv) -> None:
    await in_thread(send)(env, "one")
    queue, keeper = Away(env.database), LeaseKeeper()
    await lost_in_an_outage(env, queue, keeper)
    await in_thread(let_leases_end)(env)
    await keeper.surrender()
    queue.away = False
    await keeper.surrender()

    after = await in_thread(row)(env, "one")
    assert (after.lease_token, after.leased_until, after.crashes) == ("", None, 0)


async def test_an_outage_counts_as_no_crash_even_if_another_worker_was_first(env: WorkerEnv) -> None:
    await in_thread(send)(env, "one")
    queue, keeper = Away(env.database), LeaseKeeper()
    await lost_in_an_outage(env, queue, keeper)
    await in_thread(let_leases_end)(env)
    theirs = await receive_one(env)
    assert theirs.crashes == 1
    queue.away = False
    await keeper.surrender()

    assert (await in_thread(row)(env, "one")).crashes == 0
    assert await get_queue(env).acknowledge(theirs), "its new worker keeps it"


async def test_a_crash_is_taken_back_once(env: WorkerEnv) -> None:
    await in_thread(send)(env, "one")
    mine = await receive_one(env)
    await in_thread(let_leases_end)(env)
    await receive_one(env)
    assert not await get_queue(env).surrender(mine)
    assert (await in_thread(row)(env, "one")).crashes == 0
    # Asked again, there is nothing left that was counted because of this worker.
    assert not await get_queue(env).surrender(mine)
    assert (await in_thread(row)(env, "one")).crashes == 0


async def test_an_error_that_is_no_fault_of_the_machine_is_counted(env: WorkerEnv) -> None:
    await in_thread(send)(env, "one")
    message = await receive_one(env)

    async def work(_message: Message) -> None:
        raise FileNotFoundError(errno.ENOENT, "no such file")

    end = await handle_message(
        message, get_queue(env), Recorder(work).handlers, LeaseKeeper(), monotonic(), MachineWatch()
    )
    assert end == "retried"
    assert (await in_thread(row)(env, "one")).errors == 1
