"""The consumer: messages settle alone, a pause and an order to stop give work back, and nothing is dropped."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from pytest_django import Settings

from submissions.models import QueueMessage
from submissions.queue.base import Message, MessageBatch
from submissions.queue.consumer import FAILED_RECEIVES, handle_submission_queue
from submissions.queue.database import DatabaseQueue, get_queue
from submissions.queue.pause import pause, resume
from submissions.queue.settlement import Handler, backoff
from tests.submissions.queue.consumers import Recorder, consumer, drained
from tests.submissions.queue.messages import KIND, let_leases_end, receive, row, send
from vskill.environments import WorkerEnv
from vskill.errors import VskillError

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async


class Unlucky(VskillError):
    """Nothing went well."""

    code = "unlucky"


async def fail_for_bad(message: Message) -> None:
    if message.subject.startswith("bad"):
        raise Unlucky(f"{message.subject} cannot be done.")


class TestSettling:
    async def test_messages_of_a_batch_settle_alone(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "good one", "bad", "good two")
        recorder = Recorder(fail_for_bad)

        report = await handle_submission_queue(await receive(env), env, handlers=recorder.handlers)

        assert report.ends == {"done": 2, "retried": 1}
        left = await in_thread(row)(env, "bad")
        assert (left.errors, left.crashes, left.last_error) == (1, 0, "bad cannot be done.")
        assert await QueueMessage.objects.acount() == 1

    async def test_messages_of_a_batch_run_at_the_same_time(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one", "two", "three")
        together = asyncio.Barrier(3)

        async def meet(_message: Message) -> None:
            await together.wait()

        report = await handle_submission_queue(await receive(env), env, handlers=Recorder(meet).handlers)
        assert report.ends == {"done": 3}

    async def test_after_its_last_error_a_message_is_parked_and_the_handler_told(
        self, env: WorkerEnv, settings: Settings
    ) -> None:
        settings.QUEUE_MAX_ERRORS, settings.QUEUE_BACKOFF, settings.QUEUE_POLL_INTERVAL = 3, [0.0], 0.01
        await in_thread(send)(env, "bad")
        recorder = Recorder(fail_for_bad)

        ended = await drained(env, handlers=recorder.handlers)

        assert recorder.seen == ["bad"] * 3
        assert ended.report.ends == {"retried": 2, "parked": 1}
        assert recorder.given_up == [("bad", "bad cannot be done.")]
        assert (await in_thread(row)(env, "bad")).errors == 3

    def test_the_wait_after_an_error_grows_and_is_spread(self) -> None:
        assert django_settings.QUEUE_BACKOFF == [10.0, 60.0, 300.0]
        for errors, seconds in ((1, 10), (2, 60), (3, 300), (4, 300)):
            waits = {backoff(errors).total_seconds() for _ in range(50)}
            assert len(waits) > 1
            assert seconds * 0.8 <= min(waits) <= max(waits) <= seconds * 1.2

    async def test_a_message_of_an_unknown_kind_is_parked_with_the_reason(self, env: WorkerEnv) -> None:
        await in_thread(get_queue(env).send)(env.name, "no_such_kind", "one")
        ended = await drained(env, handlers=Recorder().handlers)
        assert ended.report.ends == {"parked": 1}
        assert (await in_thread(row)(env, "one")).last_error == "No handler knows messages of the kind 'no_such_kind'."

    async def test_a_body_that_cannot_be_read_is_parked_at_once_and_told(self, env: WorkerEnv) -> None:
        async def read(message: Message) -> None:
            message.decoded()

        await in_thread(send)(env, "one")
        await QueueMessage.objects.aupdate(body='{"cut off')
        recorder = Recorder(read)
        await drained(env, handlers=recorder.handlers)
        [(subject, reason)] = recorder.given_up
        assert subject == "one"
        assert "is not JSON" in reason

    async def test_work_without_an_end_is_ended_at_the_limit_and_tried_again(
        self, env: WorkerEnv, settings: Settings
    ) -> None:
        settings.QUEUE_MESSAGE_LIMIT = 0.05
        await in_thread(send)(env, "endless")

        async def never(_message: Message) -> None:
            await asyncio.Event().wait()

        report = await handle_submission_queue(await receive(env), env, handlers=Recorder(never).handlers)
        assert report.ends == {"retried": 1}
        assert (await in_thread(row)(env, "endless")).last_error == "no end within 0.05 s of work"

    async def test_a_timeout_of_the_work_itself_is_an_error_like_others(self, env: WorkerEnv) -> None:
        async def time_out(_message: Message) -> None:
            raise TimeoutError("the host did not answer")

        await in_thread(send)(env, "one")
        await handle_submission_queue(await receive(env), env, handlers=Recorder(time_out).handlers)
        assert (await in_thread(row)(env, "one")).last_error == "TimeoutError: the host did not answer"

    async def test_what_was_abandoned_is_told_and_the_others_are_worked_on(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "gone", "here")
        gone, here = (await receive(env)).messages
        recorder = Recorder()
        batch = MessageBatch(env.name, (here,), (gone,))
        report = await handle_submission_queue(batch, env, handlers=recorder.handlers)
        assert report.ends == {"done": 1, "parked": 1}
        assert recorder.given_up == [("gone", "its worker did not come back 3 times")]

    async def test_a_handler_that_cannot_be_told_harms_no_other_message(
        self, env: WorkerEnv, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def refuse(_message: Message, _reason: str) -> None:
            raise Unlucky("nobody listens")

        recorder = Recorder()
        await in_thread(send)(env, "gone", "here")
        gone, here = (await receive(env)).messages
        batch = MessageBatch(env.name, (here,), (gone,))
        report = await handle_submission_queue(batch, env, handlers={KIND: Handler(recorder.run, refuse)})
        assert report.ends == {"done": 1, "parked": 1}
        assert "nobody was told" in caplog.text

    async def test_a_message_that_another_worker_has_meanwhile_is_left_to_it(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one")
        batch = await receive(env)

        async def take_over(_message: Message) -> None:
            await in_thread(let_leases_end)(env)
            assert (await receive(env)).messages

        report = await handle_submission_queue(batch, env, handlers=Recorder(take_over).handlers)
        assert report.ends == {"lost": 1}
        assert (await in_thread(row)(env, "one")).leased_until is not None


class TestPausing:
    async def test_a_batch_is_given_back_while_the_queue_is_paused(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one", "two")
        batch = await receive(env)
        await in_thread(pause)(env, who="operator", why="a new disk")
        recorder = Recorder()

        report = await handle_submission_queue(batch, env, handlers=recorder.handlers)

        assert report.ends == {"given back": 2}
        assert recorder.seen == []
        status = await get_queue(env).status(env.name)
        assert (status.waiting, status.leased) == (2, 0)
        assert (await in_thread(row)(env, "one")).crashes == 0

    async def test_what_cannot_be_given_back_is_not_said_to_be(
        self, env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await in_thread(send)(env, "one", "two")
        batch = await receive(env)
        await in_thread(pause)(env, who="operator", why="a new disk")
        release = type(get_queue(env)).release

        async def refuse_one(queue: DatabaseQueue, message: Message) -> bool:
            if message.subject == "one":
                raise OSError("the disk is full")
            return await release(queue, message)

        monkeypatch.setattr(DatabaseQueue, "release", refuse_one)
        report = await handle_submission_queue(batch, env, handlers={})
        assert report.ends == {"given back": 1, "unsettled": 1}

    async def test_what_was_parked_for_its_crashes_is_handed_to_a_person_during_a_pause_too(
        self, env: WorkerEnv
    ) -> None:
        await in_thread(send)(env, "one")
        abandoned = (await receive(env)).messages
        await in_thread(pause)(env, who="ada", why="maintenance")
        recorder = Recorder()
        batch = MessageBatch(env.name, parked=abandoned)
        report = await handle_submission_queue(batch, env, handlers=recorder.handlers)
        assert report.ends == {"parked": 1}
        assert [subject for subject, _reason in recorder.given_up] == ["one"]

    async def test_nothing_is_taken_from_a_paused_queue_and_drain_ends(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one")
        await in_thread(pause)(env, who="operator", why="a new disk")
        recorder = Recorder()
        await drained(env, handlers=recorder.handlers)
        assert recorder.seen == []

        await in_thread(resume)(env)
        await drained(env, handlers=recorder.handlers)
        assert recorder.seen == ["one"]


class TestStopping:
    async def test_once_takes_what_fits_and_ends(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, *[f"subject {number}" for number in range(10)])
        recorder = Recorder()
        running = consumer(env, handlers=recorder.handlers, size=2, concurrency=3, once=True)
        await running.run(asyncio.Event())
        assert len(recorder.seen) == 6
        assert (await get_queue(env).status(env.name)).waiting == 4

    async def test_once_on_an_empty_queue_ends(self, env: WorkerEnv) -> None:
        running = consumer(env, handlers={}, once=True)
        await running.run(asyncio.Event())
        assert str(running.report) == "nothing"

    async def test_drain_waits_for_delayed_work(self, env: WorkerEnv, settings: Settings) -> None:
        settings.QUEUE_POLL_INTERVAL = 0.01
        await in_thread(send)(env, "now")
        await in_thread(send)(env, "later", delay=timedelta(seconds=0.1))
        recorder = Recorder()
        await drained(env, handlers=recorder.handlers)
        assert recorder.seen == ["now", "later"]

    async def test_an_order_to_stop_lets_work_end_and_takes_nothing_new(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one", "two")
        stop, started, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def work(_message: Message) -> None:
            started.set()
            await go_on.wait()

        running = consumer(env, handlers=Recorder(work).handlers, size=1, concurrency=1)
        task = asyncio.create_task(running.run(stop))
        await started.wait()
        stop.set()
        await asyncio.sleep(0)
        go_on.set()
        await task

        assert running.report.ends == {"done": 1}
        assert (await get_queue(env).status(env.name)).waiting == 1

    async def test_what_does_not_end_within_the_grace_is_given_back_uncounted(
        self, env: WorkerEnv, settings: Settings
    ) -> None:
        settings.QUEUE_SHUTDOWN_GRACE = 0.05
        await in_thread(send)(env, *[f"subject {number}" for number in range(7)])
        stop, all_started = asyncio.Event(), asyncio.Event()
        recorder = Recorder()

        async def never(_message: Message) -> None:
            if len(recorder.seen) == 6:
                all_started.set()
            await asyncio.Event().wait()

        recorder.work = never
        running = consumer(env, handlers=recorder.handlers, size=3, concurrency=2)
        task = asyncio.create_task(running.run(stop))
        await all_started.wait()
        stop.set()
        await task

        status = await get_queue(env).status(env.name)
        assert (status.waiting, status.leased) == (7, 0)
        assert not await QueueMessage.objects.exclude(errors=0, crashes=0, lease_token="").aexists()

    async def test_an_order_that_came_before_the_start_is_heard(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one")
        stop = asyncio.Event()
        stop.set()
        recorder = Recorder()
        await consumer(env, handlers=recorder.handlers).run(stop)
        assert recorder.seen == []


class TestIsolation:
    async def test_a_consumer_works_on_one_isolated_message_at_a_time_beside_others(
        self, env: WorkerEnv, settings: Settings
    ) -> None:
        settings.QUEUE_POLL_INTERVAL = 0.01
        await in_thread(send)(env, "killer one", "killer two", "killer three")
        await QueueMessage.objects.aupdate(crashes=2)
        await in_thread(send)(env, "fresh one", "fresh two")
        at_work: set[str] = set()
        together: list[frozenset[str]] = []

        async def work(message: Message) -> None:
            at_work.add(message.subject)
            together.append(frozenset(at_work))
            await asyncio.sleep(0)
            at_work.discard(message.subject)

        recorder = Recorder(work)
        await drained(env, handlers=recorder.handlers, concurrency=5)

        assert sorted(recorder.seen) == ["fresh one", "fresh two", "killer one", "killer three", "killer two"]
        assert max(sum(subject.startswith("killer") for subject in one) for one in together) == 1

    async def test_an_isolated_message_whose_worker_crashes_is_parked_and_reported(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "killer")
        await QueueMessage.objects.aupdate(crashes=2)
        await receive(env, isolated=True)
        await in_thread(let_leases_end)(env)
        recorder = Recorder()
        ended = await drained(env, handlers=recorder.handlers)
        assert ended.report.ends == {"parked": 1}
        assert recorder.given_up == [("killer", "its worker did not come back 3 times")]
        assert recorder.seen == []


async def test_a_database_that_cannot_be_asked_is_asked_again(
    env: WorkerEnv, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.QUEUE_POLL_INTERVAL = 0.01
    caplog.set_level(logging.ERROR)
    await in_thread(send)(env, "one")
    nowhere = WorkerEnv(name="nowhere", database="no_such_alias")
    stop = asyncio.Event()

    async def work(_message: Message) -> None:
        stop.set()

    running = consumer(nowhere, env, handlers=Recorder(work).handlers)
    await running.run(stop)
    assert running.report.ends == {"done": 1}
    assert "no work could be taken from nowhere" in caplog.text


async def test_a_consumer_that_can_receive_nothing_again_and_again_says_so(env: WorkerEnv, settings: Settings) -> None:
    settings.QUEUE_POLL_INTERVAL = 0.01
    nowhere = WorkerEnv(name="nowhere", database="no_such_alias")
    await in_thread(send)(env, *[f"subject {number}" for number in range(FAILED_RECEIVES)])
    stop = asyncio.Event()
    faults: list[str] = []

    async def work(_message: Message) -> None:
        faults.append(running.fault)
        if len(faults) == FAILED_RECEIVES:
            stop.set()

    running = consumer(nowhere, env, handlers=Recorder(work).handlers, size=1, concurrency=1)
    await running.run(stop)
    assert faults[0] == ""
    assert "no work can be taken from nowhere" in running.fault
