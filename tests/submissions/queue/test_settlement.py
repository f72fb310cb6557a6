"""What was decided about a message is written, even where its worker is told to stop at that very moment."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from time import monotonic

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError
from pytest_django import Settings

from submissions.models import QueueMessage
from submissions.queue import settlement
from submissions.queue.base import InvalidMessage, Message
from submissions.queue.database import DatabaseQueue
from submissions.queue.leases import LeaseKeeper
from submissions.queue.machine_watch import MachineWatch
from submissions.queue.settlement import handle_message
from tests.submissions.queue.consumers import Recorder, nothing
from tests.submissions.queue.messages import receive_one, row, send
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async


@pytest.fixture
def busy(settings: Settings) -> Iterator[threading.Event]:
    """Keep the only thread that writes at other work until the event is set."""
    settings.KV_WRITE_WORKERS = 1
    done = threading.Event()
    yield done
    done.set()


class Announcing(DatabaseQueue):
    """The real queue, which says when something is about to be written to it."""

    def __init__(self, env: WorkerEnv) -> None:
        super().__init__(env.database)
        self.writes = asyncio.Event()

    def acknowledge(self, message: Message) -> Awaitable[bool]:
        self.writes.set()
        return super().acknowledge(message)

    async def retry(self, message: Message, reason: str, delay: timedelta) -> bool:
        self.writes.set()
        return await super().retry(message, reason, delay)

    async def park(self, message: Message, reason: str) -> bool:
        self.writes.set()
        return await super().park(message, reason)


async def fail(_message: Message) -> None:
    raise OSError("the disk is full")


async def refuse(_message: Message) -> None:
    raise InvalidMessage("nobody can read this")


async def stopped_while_it_settles(
    env: WorkerEnv, busy: threading.Event, work: Callable[[Message], Awaitable[None]]
) -> Recorder:
    """Cancel the work on a message when its end has been decided and waits for the thread that writes."""
    await in_thread(send)(env, "one")
    message = await receive_one(env)
    writers.submit(busy.wait)
    try:
        recorder, queue = Recorder(work), Announcing(env)
        working = asyncio.create_task(
            handle_message(message, queue, recorder.handlers, LeaseKeeper(), monotonic(), MachineWatch())
        )
        await queue.writes.wait()
        working.cancel()
        await asyncio.sleep(0)
    finally:
        busy.set()
    with pytest.raises(asyncio.CancelledError):
        await working
    return recorder


async def test_an_error_is_counted_and_the_message_comes_back_after_its_delay(
    env: WorkerEnv, busy: threading.Event
) -> None:
    await stopped_while_it_settles(env, busy, fail)

    left = await in_thread(row)(env, "one")
    assert (left.errors, left.crashes, left.lease_token, left.leased_until) == (1, 0, "", None)
    assert left.last_error == "OSError: the disk is full"


async def test_a_message_is_parked_and_its_handler_told(env: WorkerEnv, busy: threading.Event) -> None:
    recorder = await stopped_while_it_settles(env, busy, refuse)

    assert (await in_thread(row)(env, "one")).parked_at is not None
    assert recorder.given_up == [("one", "nobody can read this")]


async def test_a_message_that_is_done_goes(env: WorkerEnv, busy: threading.Event) -> None:
    await stopped_while_it_settles(env, busy, nothing)

    assert not await QueueMessage.objects.aexists()


class Unwilling(DatabaseQueue):
    """A queue whose database goes away before anything can be given back or settled."""

    async def release(self, message: Message) -> bool:
        raise OperationalError("the database has gone")

    async def retry(self, message: Message, reason: str, delay: timedelta) -> bool:
        await asyncio.sleep(0)
        raise OperationalError("the database has gone")


async def stopped_at_work(env: WorkerEnv, go_on: Callable[[], Awaitable[None]]) -> Message:
    """Cancel the work on a message once it has begun, on an unwilling queue, and return the message."""
    await in_thread(send)(env, "one")
    message, begun = await receive_one(env), asyncio.Event()

    async def begin(_message: Message) -> None:
        begun.set()
        await go_on()

    work = handle_message(
        message, Unwilling(env.database), Recorder(begin).handlers, LeaseKeeper(), monotonic(), MachineWatch()
    )
    working = asyncio.create_task(work)
    await begun.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    return message


async def test_what_cannot_be_given_back_is_named(env: WorkerEnv, caplog: pytest.LogCaptureFixture) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    message = await stopped_at_work(env, never)
    assert f"message {message.id} could not be given back, trying again: OperationalError(" in caplog.text


async def test_what_cannot_be_settled_any_more_is_named(env: WorkerEnv, caplog: pytest.LogCaptureFixture) -> None:
    async def break_down() -> None:
        raise OSError("the disk is full")

    message = await stopped_at_work(env, break_down)
    assert f"message {message.id} was not settled and comes back after its lease: the database has gone" in caplog.text


async def test_an_attempt_that_fails_is_repeated_after_each_wait_and_then_parked(
    env: WorkerEnv, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (settings.QUEUE_BACKOFF, settings.QUEUE_MAX_ERRORS) == ([10.0, 60.0, 300.0], 4)
    monkeypatch.setattr(settlement, "JITTER", 0.0)
    await in_thread(send)(env, "one")
    waits: list[float] = []

    class Watched(DatabaseQueue):
        async def retry(self, message: Message, reason: str, delay: timedelta) -> bool:
            waits.append(delay.total_seconds())
            return await super().retry(message, reason, timedelta())

    recorder, queue = Recorder(fail), Watched(env.database)
    ends = [
        await handle_message(
            await receive_one(env), queue, recorder.handlers, LeaseKeeper(), monotonic(), MachineWatch()
        )
        for _attempt in range(4)
    ]
    assert ends == ["retried", "retried", "retried", "parked"]
    assert waits == [10.0, 60.0, 300.0]
