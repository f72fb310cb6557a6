"""A consumer keeps batches free for publishers without work in it: a slow host slows its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from math import inf
from time import monotonic

import pytest
from asgiref.sync import sync_to_async
from pytest_django import Settings

from submissions.queue import in_flight
from submissions.queue.base import Message, MessageBatch
from submissions.queue.consumer import Consumer
from submissions.queue.database import get_queue
from submissions.queue.in_flight import BatchesInFlight, Share
from tests.submissions.queue.consumers import Recorder, consumer, drained
from tests.submissions.queue.messages import KIND, send_of
from vskill.environments import WorkerEnv

in_thread = sync_to_async
PUBLIC, INTERNAL = WorkerEnv(name="public"), WorkerEnv(name="internal")
SLOW, LATE, QUICK = "slow.example/a", "late.example/c", "quick.example/b"


class Work:
    """A handler whose work for some publishers never ends, and that can be waited for."""

    def __init__(self, *endless: str) -> None:
        self._endless = endless
        self._moved = asyncio.Condition()
        self.begun: Counter[str] = Counter()
        self.done: Counter[str] = Counter()

    async def run(self, message: Message) -> None:
        """Begin the work for a message, and end it unless it never does."""
        await self._count(self.begun, message)
        if message.publisher.startswith(self._endless):
            await asyncio.Event().wait()
        await self._count(self.done, message)

    async def _count(self, counted: Counter[str], message: Message) -> None:
        async with self._moved:
            counted[message.publisher] += 1
            self._moved.notify_all()

    async def has_begun(self, *publishers: str, count: int) -> None:
        """Wait until the work for so many messages of these together has begun."""
        async with self._moved:
            await self._moved.wait_for(lambda: sum(self.begun[publisher] for publisher in publishers) >= count)

    async def is_done(self, publisher: str, count: int) -> None:
        """Wait until so many messages are done."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.done[publisher] >= count)


@asynccontextmanager
async def consuming(running: Consumer) -> AsyncIterator[None]:
    """Let a consumer run, and stop it."""
    stop = asyncio.Event()
    task = asyncio.create_task(running.run(stop))
    try:
        async with asyncio.timeout(60):
            yield
    finally:
        stop.set()
        await task


@pytest.fixture
def shipped(settings: Settings) -> None:
    """Poll often, give work back at once, and let nothing begin because a wait for a fuller batch is over."""
    settings.QUEUE_POLL_INTERVAL = 0.01
    settings.QUEUE_SHUTDOWN_GRACE = 0.0
    settings.QUEUE_MAX_BATCH_WAIT = 3600.0


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("shipped")
class TestSlowHosts:
    async def test_thirty_endless_messages_of_one_publisher_leave_a_batch_to_the_single_one_of_another(
        self, env: WorkerEnv
    ) -> None:
        work = Work(SLOW)
        await in_thread(send_of)(env, SLOW, 30)
        async with consuming(consumer(env, handlers=Recorder(work.run).handlers)):
            await work.has_begun(SLOW, count=24)
            await in_thread(send_of)(env, QUICK)
            await work.is_done(QUICK, 1)
        assert work.begun == {SLOW: 24, QUICK: 1}
        assert not work.done[SLOW]

    async def test_a_second_slow_publisher_that_comes_later_leaves_the_last_batch_to_a_third(
        self, env: WorkerEnv
    ) -> None:
        work = Work(SLOW, LATE)
        await in_thread(send_of)(env, SLOW, 30)
        async with consuming(consumer(env, handlers=Recorder(work.run).handlers)):
            await work.has_begun(SLOW, count=24)
            await in_thread(send_of)(env, LATE, 30)
            await work.has_begun(LATE, count=3)
            for number in range(3):
                await in_thread(send_of)(env, QUICK, begin=number)
                await work.is_done(QUICK, number + 1)
        assert work.begun == {SLOW: 24, LATE: 3, QUICK: 3}

    async def test_three_slow_publishers_that_come_together_leave_both_kept_batches(self, env: WorkerEnv) -> None:
        slow = ("slow1.example/a", "slow2.example/b", "slow3.example/c")
        work = Work(*slow)
        for publisher in slow:
            await in_thread(send_of)(env, publisher, 30)
        async with consuming(consumer(env, handlers=Recorder(work.run).handlers)):
            await work.has_begun(*slow, count=24)
            await in_thread(send_of)(env, QUICK, 20)
            await work.is_done(QUICK, 20)
        assert work.begun.total() == 24 + 20
        assert work.done == {QUICK: 20}

    async def test_forty_owners_of_a_slow_host_leave_the_last_batch_to_other_hosts(self, env: WorkerEnv) -> None:
        work = Work("slow.example/")
        owners = [f"slow.example/{number}" for number in range(40)]
        for owner in owners:
            await in_thread(send_of)(env, owner)
        async with consuming(consumer(env, handlers=Recorder(work.run).handlers)):
            await work.has_begun(*owners, count=27)
            await in_thread(send_of)(env, QUICK)
            await work.is_done(QUICK, 1)
        assert work.begun.total() == 27 + 1

    async def test_what_shares_its_batches_with_slow_work_is_worked_off_all_the_same(self, env: WorkerEnv) -> None:
        work = Work(SLOW)
        await in_thread(send_of)(env, SLOW, 60)
        await in_thread(send_of)(env, QUICK, 60)
        async with consuming(consumer(env, handlers=Recorder(work.run).handlers)):
            await work.is_done(QUICK, 60)
        assert not work.done[SLOW]

    async def test_each_environment_keeps_batches_for_its_own(self, env: WorkerEnv) -> None:
        work = Work(SLOW)
        await in_thread(send_of)(PUBLIC, SLOW, 60)
        async with consuming(consumer(PUBLIC, INTERNAL, handlers=Recorder(work.run).handlers)):
            # Ten less one for the other environment, and less the two that are kept here.
            await work.has_begun(SLOW, count=21)
            await in_thread(send_of)(PUBLIC, QUICK)
            await in_thread(send_of)(INTERNAL, LATE, 3)
            await work.is_done(QUICK, 1)
            await work.is_done(LATE, 3)
        assert work.begun == {SLOW: 21, QUICK: 1, LATE: 3}

    async def test_a_batch_that_is_kept_is_not_asked_for_without_end(
        self, env: WorkerEnv, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.QUEUE_POLL_INTERVAL = 3600.0
        looks = 0
        take = Consumer._take_what_fits

        async def counted(self: Consumer, *arguments: object) -> bool:
            nonlocal looks
            looks += 1
            return await take(self, *arguments)  # type: ignore[arg-type]  # passed on as they are

        monkeypatch.setattr(in_flight, "LOOK_SECONDS", 0.0)
        # Nobody is told of new messages either.
        monkeypatch.setattr("submissions.queue.consumer.watching", lambda *_: nullcontext())
        monkeypatch.setattr(Consumer, "_take_what_fits", counted)
        work = Work(SLOW)
        await in_thread(send_of)(env, SLOW, 60)
        async with consuming(consumer(env, handlers=Recorder(work.run).handlers)):
            await work.has_begun(SLOW, count=24)
            while looks < 2:
                await in_thread(int)()
            for _turn in range(50):
                await in_thread(int)()
        # The first look took what fits, and the second one nothing.
        assert looks == 2


@pytest.mark.django_db(transaction=True)
class TestOnePublisher:
    @pytest.mark.parametrize("concurrency", [1, 2, 3, 10])
    async def test_all_of_its_messages_are_worked_off(self, env: WorkerEnv, concurrency: int) -> None:
        await in_thread(send_of)(env, QUICK, 60)
        ended = await drained(env, handlers=Recorder().handlers, concurrency=concurrency)
        assert ended.report.ends == {"done": 60}

    async def test_eight_of_ten_batches_are_in_work_together(self, env: WorkerEnv) -> None:
        await in_thread(send_of)(env, QUICK, 48)
        together = asyncio.Barrier(24)

        async def work(_message: Message) -> None:
            await together.wait()

        async with asyncio.timeout(60):
            ended = await drained(env, handlers=Recorder(work).handlers)
        assert ended.report.ends == {"done": 48}

    async def test_one_batch_at_a_time_is_enough_for_several(self, env: WorkerEnv) -> None:
        for publisher in (SLOW, QUICK, LATE):
            await in_thread(send_of)(env, publisher, 7)
        ended = await drained(env, handlers=Recorder().handlers, concurrency=1)
        assert ended.report.ends == {"done": 21}

    async def test_once_keeps_nothing_as_nobody_can_come_later(self, env: WorkerEnv) -> None:
        await in_thread(send_of)(env, QUICK, 40)
        recorder = Recorder()
        await consumer(env, handlers=recorder.handlers, once=True).run(asyncio.Event())
        assert len(recorder.seen) == 30
        assert (await get_queue(env).status(env.name)).waiting == 10


class Flight:
    """Batches whose tasks end when the test says so."""

    def __init__(self, places: int, *, keeps: bool = True) -> None:
        self.changes = 0
        self.batches = BatchesInFlight(places, keeps=keeps, changed=self._changed)
        self.tasks: list[asyncio.Task[bool]] = []
        self._numbers = 0

    def _changed(self) -> None:
        self.changes += 1

    def begin(self, *publishers: str, environment: str = "public") -> None:
        """Let a batch be in flight with a message of each publisher."""
        messages = []
        for publisher in publishers:
            self._numbers += 1
            messages.append(Message(self._numbers, environment, KIND, "", "{}", "token", 0, 0, publisher))
        task = asyncio.create_task(asyncio.Event().wait())
        self.batches.begin(task, MessageBatch(environment, tuple(messages)))
        self.tasks.append(task)

    async def run(self, number: int, publisher: str, environment: str = "public") -> None:
        """Let the work for a message end."""
        handlers = self.batches.counted(Recorder().handlers)
        await handlers[KIND].run(Message(number, environment, KIND, "", "{}", "token", 0, 0, publisher))

    def share(self, environment: str = "public", *others: str) -> Share:
        """Return the share of an environment beside others."""
        return self.batches.share(environment, (environment, *others))


class TestShares:
    @pytest.mark.parametrize(
        ("places", "general"), [(1, 1), (2, 1), (3, 2), (7, 6), (8, 6), (10, 8), (30, 28)], ids=str
    )
    async def test_all_but_the_last_are_for_anybody(self, places: int, general: int) -> None:
        assert Flight(places).share() == Share(general)

    async def test_the_last_but_one_is_for_publishers_and_the_last_for_hosts_without_work(self) -> None:
        flight = Flight(10)
        for _batch in range(7):
            flight.begin("h/a", "h/b", "")
        assert flight.share() == Share(1)
        flight.begin("h/a")
        assert flight.share() == Share(1, frozenset({"h/a", "h/b"}))
        flight.begin("i/c")
        assert flight.share() == Share(1, frozenset({"h", "i"}))
        flight.begin("j/d")
        assert flight.share() == Share(0, frozenset({"h/a", "h/b", "i/c", "j/d"}))

    async def test_the_only_kept_batch_of_a_few_is_for_publishers(self) -> None:
        flight = Flight(2)
        flight.begin("h/a")
        assert flight.share() == Share(1, frozenset({"h/a"}))

    async def test_nothing_is_kept_where_nobody_can_come(self) -> None:
        flight = Flight(3, keeps=False)
        flight.begin("h/a")
        flight.begin("h/a")
        assert flight.share() == Share(1)

    async def test_another_environment_leaves_nobody_out(self) -> None:
        flight = Flight(3)
        flight.begin("h/a")
        flight.begin("h/a")
        assert flight.share("internal", "public") == Share(1)
        assert flight.share("public", "internal") == Share(0, frozenset({"h/a"}))

    async def test_a_publisher_whose_messages_have_ended_is_a_newcomer_though_their_batch_goes_on(self) -> None:
        flight = Flight(2)
        flight.begin("h/a", "h/b", "h/b")
        await flight.run(2, "h/b")
        assert flight.share().without == {"h/a", "h/b"}
        told = [flight.changes]
        await flight.run(3, "h/b")
        assert flight.share().without == {"h/a"}
        assert [*told, flight.changes] == [0, 1], "told only when its last one has ended"

    async def test_a_look_that_found_nobody_is_put_off_unless_fewer_are_left_out(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(in_flight, "LOOK_SECONDS", 3600.0)
        flight = Flight(2)
        flight.begin("h/a", "h/b", "h/b")
        looked = flight.share()
        assert flight.batches.seconds_until_look == inf
        flight.batches.found_nobody("public", looked)
        assert flight.share() == Share(0, frozenset({"h/a", "h/b"}))
        assert 3000 < flight.batches.seconds_until_look <= 3600
        await flight.run(2, "h/b")
        await flight.run(3, "h/b")
        assert flight.share() == Share(1, frozenset({"h/a"}))
        assert flight.batches.seconds_until_look == inf

    async def test_a_look_that_was_put_off_is_made_when_its_time_has_come(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flight = Flight(2)
        flight.begin("h/a")
        flight.batches.found_nobody("public", flight.share())
        assert flight.share().batches == 0
        now = monotonic() + in_flight.LOOK_SECONDS
        monkeypatch.setattr(in_flight, "monotonic", lambda: now)
        assert flight.batches.seconds_until_look == 0.0
        assert flight.share() == Share(1, frozenset({"h/a"}))
        assert flight.batches.seconds_until_look == inf

    async def test_the_end_of_a_batch_is_told_and_frees_its_place_whatever_became_of_its_messages(self) -> None:
        flight = Flight(2)
        flight.begin("h/a")
        assert flight.batches.free == 1
        flight.tasks[0].cancel()
        await asyncio.wait(flight.tasks)
        await asyncio.sleep(0)
        assert flight.changes == 1
        assert flight.share() == Share(1)
        assert flight.batches.free == 2
