"""Isolated messages are handled in another process, so that they can crash no other message's worker."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from submissions.models import QueueMessage
from submissions.queue.base import Message
from submissions.queue.consumer import Consumer, ConsumerOptions
from submissions.queue.database import get_queue
from submissions.queue.isolation import IsolatedMessages
from submissions.queue.process import isolated_command, run_process
from tests.submissions.queue.consumers import Recorder
from tests.submissions.queue.messages import send
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async


def options(run_isolated: Callable[[WorkerEnv], Awaitable[None]]) -> ConsumerOptions:
    return ConsumerOptions(3, 10, "test", drain=True, run_isolated=run_isolated)


async def isolate(env: WorkerEnv, *subjects: str) -> None:
    """Send messages that one more crash would park."""
    await in_thread(send)(env, *subjects)
    await QueueMessage.objects.filter(subject__in=subjects).aupdate(crashes=2)


async def test_an_isolated_message_is_left_to_the_other_process_and_drain_waits_for_it(
    env: WorkerEnv, settings: Settings
) -> None:
    settings.QUEUE_POLL_INTERVAL = 0.01
    await isolate(env, "killer")
    await in_thread(send)(env, "fresh")
    here, there = Recorder(), Recorder()

    async def run_isolated(_env: WorkerEnv) -> None:
        alone = ConsumerOptions(1, 1, "isolated", isolated_only=True)
        await Consumer([env], there.handlers, alone).run(asyncio.Event())

    await Consumer([env], here.handlers, options(run_isolated)).run(asyncio.Event())

    assert (here.seen, there.seen) == (["fresh"], ["killer"])
    assert not await QueueMessage.objects.aexists()


async def test_only_isolated_messages_are_taken_there_one_after_another(env: WorkerEnv) -> None:
    await isolate(env, "killer one", "killer two")
    await in_thread(send)(env, "fresh")
    recorder = Recorder()
    alone = ConsumerOptions(1, 1, "isolated", isolated_only=True)
    await Consumer([env], recorder.handlers, alone).run(asyncio.Event())
    assert recorder.seen == ["killer one", "killer two"]
    assert (await get_queue(env).status(env.name)).waiting == 1


async def test_isolated_messages_are_looked_for_once_a_poll_interval_and_by_their_own_consumer_at_once(
    env: WorkerEnv, settings: Settings
) -> None:
    settings.QUEUE_POLL_INTERVAL = 1_000.0
    beside = IsolatedMessages("test", only=False, run_isolated=None)
    alone = IsolatedMessages("test", only=True, run_isolated=None)
    assert not await beside.receive(env)
    assert not await alone.receive(env)
    await isolate(env, "killer")
    assert not await beside.receive(env)
    assert [message.subject for message in (await alone.receive(env)).messages] == ["killer"]


async def test_it_is_started_again_when_it_could_not_work(
    env: WorkerEnv, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.QUEUE_POLL_INTERVAL = 0.01
    await isolate(env, "killer")
    started: list[str] = []

    async def run_isolated(one: WorkerEnv) -> None:
        started.append(one.name)
        if len(started) == 1:
            raise OSError("no process could be started")
        await QueueMessage.objects.all().adelete()

    await Consumer([env], {}, options(run_isolated)).run(asyncio.Event())
    assert started == [env.name] * 2
    assert "isolated messages of default could not be handled" in caplog.text


async def test_an_order_to_stop_reaches_it(env: WorkerEnv) -> None:
    await isolate(env, "killer")
    stop, told = asyncio.Event(), asyncio.Event()

    async def run_isolated(_env: WorkerEnv) -> None:
        stop.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.set()

    await Consumer([env], {}, options(run_isolated)).run(stop)
    assert told.is_set()


async def test_once_waits_for_the_isolated_message_that_it_left_to_the_other_process(env: WorkerEnv) -> None:
    await isolate(env, "killer")
    ended = asyncio.Event()

    async def run_isolated(_env: WorkerEnv) -> None:
        await QueueMessage.objects.all().adelete()
        ended.set()

    once = ConsumerOptions(3, 10, "test", once=True, run_isolated=run_isolated)
    await Consumer([env], {}, once).run(asyncio.Event())
    assert ended.is_set()


async def test_it_is_given_its_time_to_stop_beside_the_batches_and_not_before_them(
    env: WorkerEnv, settings: Settings
) -> None:
    settings.QUEUE_SHUTDOWN_GRACE = 0.05
    await isolate(env, "killer")
    await in_thread(send)(env, "long")
    stop, at_work, given_back = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run_isolated(_env: WorkerEnv) -> None:
        await at_work.wait()
        stop.set()
        try:
            await asyncio.Event().wait()
        finally:
            await given_back.wait()

    async def work(_message: Message) -> None:
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_back.set()

    async with asyncio.timeout(60):
        await Consumer([env], Recorder(work).handlers, options(run_isolated)).run(stop)
    assert given_back.is_set()


async def test_a_process_that_is_told_to_stop_is_waited_for(tmp_path: Path) -> None:
    program = (
        "import pathlib, signal, sys\n"
        "def stop(*_):\n    pathlib.Path(sys.argv[1], 'stopped').touch()\n    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "pathlib.Path(sys.argv[1], 'ready').write_text('ready')\n"
        "while True:\n    signal.pause()\n"
    )
    os.mkfifo(tmp_path / "ready")
    running = asyncio.create_task(run_process([sys.executable, "-c", program, str(tmp_path)]))
    assert await asyncio.to_thread((tmp_path / "ready").read_text) == "ready"
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (tmp_path / "stopped").exists()


async def test_a_process_that_dies_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    await run_process([sys.executable, "-c", "import os; os._exit(3)"])
    assert "ended with 3" in caplog.text


def test_the_command_names_the_environment() -> None:
    assert isolated_command(WorkerEnv(name="public"))[2:] == [
        "consume",
        "--isolated",
        "--environment",
        "public",
    ]
