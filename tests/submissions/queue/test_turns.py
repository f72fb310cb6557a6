"""Publishers take turns: a flood of one delays another by a batch or two, in whatever way the flood has come."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.db.models import F

from submissions.messages import count_ahead, unpark
from submissions.models import QueueMessage
from submissions.queue import database
from submissions.queue.base import Message
from submissions.queue.database import get_queue
from tests.submissions.queue.messages import KIND, let_leases_end, pass_time, receive, row
from tests.submissions.queue.messages import send_of as send
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers

pytestmark = pytest.mark.django_db(transaction=True)

BATCH = 3


def take(env: WorkerEnv, limit: int = BATCH) -> list[Message]:
    """Receive the next messages."""
    return list(async_to_sync(receive)(env, limit).messages)


def work(env: WorkerEnv, batches: int, size: int = BATCH) -> list[str]:
    """Receive batches, finish each before the next, and return the subjects in their order."""

    async def finish() -> list[str]:
        done: list[str] = []
        for _batch in range(batches):
            for message in (await receive(env, size)).messages:
                assert await get_queue(env).acknowledge(message)
                done.append(message.subject)
        return done

    return async_to_sync(finish)()


def of_each(subjects: list[str]) -> Counter[str]:
    """Count subjects by their publisher."""
    return Counter(subject.split()[0] for subject in subjects)


class TestFloods:
    def test_ten_thousand_of_one_publisher_delay_the_single_one_of_another_by_two_batches_at_most(
        self, env: WorkerEnv
    ) -> None:
        send(env, "flood", 10_000)
        work(env, 5)
        send(env, "single")
        assert "single 0" in work(env, 2)

    def test_so_it_is_while_other_batches_of_the_flood_are_in_work(self, env: WorkerEnv) -> None:
        send(env, "flood", 200)
        in_work = [message for _batch in range(10) for message in take(env)]
        assert len(in_work) == 30
        send(env, "single")
        assert "single 0" in work(env, 2)

    def test_what_was_there_before_the_flood_is_not_overtaken_by_it(self, env: WorkerEnv) -> None:
        send(env, "early", 2)
        send(env, "flood", 100)
        assert [one for one in work(env, 2) if one.startswith("early")] == ["early 0", "early 1"]

    @pytest.mark.parametrize("size", [1, 2, 3, 30])
    def test_two_floods_share_by_their_weights_whatever_the_size_of_a_batch(self, env: WorkerEnv, size: int) -> None:
        send(env, "light", 100)
        send(env, "heavy", 100, weight=3.0)
        taken = of_each(work(env, 60 // size, size))
        assert abs(taken["light"] - 15) <= 1
        assert taken.total() == 60

    def test_a_publisher_that_always_has_one_waiting_has_no_more_than_its_turn(self, env: WorkerEnv) -> None:
        for number in range(4):
            send(env, f"flood{number}", 60)
        taken: Counter[str] = Counter()
        for number in range(100):
            if not QueueMessage.objects.filter(publisher="one-by-one").exists():
                send(env, "one-by-one", begin=number)
            taken += of_each(work(env, 1, 1))
        assert taken["one-by-one"] <= 21

    def test_new_publishers_without_end_delay_an_old_one_by_a_round_and_never_for_ever(self, env: WorkerEnv) -> None:
        send(env, "old", 5)
        done: list[str] = []
        for number in range(60):
            send(env, f"new{number}")
            done += work(env, 1, 1)
        assert {f"old {number}" for number in range(5)} <= set(done)

    def test_a_flood_that_had_the_queue_to_itself_is_not_made_to_wait_for_it(self, env: WorkerEnv) -> None:
        send(env, "first", 300)
        work(env, 10, 20)
        send(env, "second", 300)
        taken = of_each(work(env, 10, 2))
        assert abs(taken["first"] - taken["second"]) <= 2

    def test_turns_of_the_past_count_for_nothing_once_the_queue_was_empty(self, env: WorkerEnv) -> None:
        send(env, "one", 40)
        work(env, 20)
        send(env, "two", 40)
        send(env, "one", 40, begin=40)
        taken = of_each(work(env, 10, 4))
        assert abs(taken["one"] - taken["two"]) <= 2

    def test_what_is_in_work_alone_still_counts_as_the_turn_that_its_publisher_had(self, env: WorkerEnv) -> None:
        send(env, "busy", 30)
        assert len(take(env, 30)) == 30
        send(env, "newcomer", 60)
        send(env, "busy", 60, begin=30)
        taken = of_each(work(env, 10, 4))
        assert abs(taken["busy"] - taken["newcomer"]) <= 2

    def test_messages_without_a_publisher_share_the_turns_of_one(self, env: WorkerEnv) -> None:
        for number in range(50):
            get_queue(env).send(env.name, f"kind-{number}", f"none {number}")
        send(env, "single")
        assert "single 0" in work(env, 2)

    def test_an_environment_has_turns_of_its_own(self, env: WorkerEnv) -> None:
        other = WorkerEnv(name="another")
        send(other, "flood", 100)
        work(other, 20)
        send(env, "one", 3)
        send(other, "single")
        assert "single 0" in work(other, 2)
        assert work(env, 1) == ["one 0", "one 1", "one 2"]

    def test_messages_that_are_sent_at_the_same_moment_have_a_turn_each(self, env: WorkerEnv) -> None:
        together = threading.Barrier(8)

        def send_in_a_transaction(number: int) -> None:
            try:
                together.wait()
                send(env, "flood", begin=number)
            finally:
                connection.close()

        threads = [threading.Thread(target=send_in_a_transaction, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert list(QueueMessage.objects.order_by("turn").values_list("turn", flat=True)) == [
            float(turn) for turn in range(1, 9)
        ]


class TestWithinOnePublisher:
    def test_priority_and_age_decide_however_much_waits(self, env: WorkerEnv) -> None:
        send(env, "other", 50)
        send(env, "mine", 50)
        send(env, "mine", priority=5, begin=100)
        send(env, "mine", priority=-1, begin=101)
        send(env, "mine", 3, priority=10, begin=102)
        mine = [one for one in work(env, 50, 2) if one.startswith("mine")]
        assert mine[:4] == ["mine 102", "mine 103", "mine 104", "mine 100"]
        assert mine[4:] == [f"mine {number}" for number in range(len(mine) - 4)]
        assert 50 <= len(mine) <= 55

    def test_a_low_priority_is_last_even_when_it_was_sent_first(self, env: WorkerEnv) -> None:
        send(env, "mine", priority=-1)
        send(env, "mine", 5, begin=1)
        assert work(env, 2) == ["mine 1", "mine 2", "mine 3", "mine 4", "mine 5", "mine 0"]

    def test_waiting_outweighs_priority_after_a_minute_for_each_step(self, env: WorkerEnv) -> None:
        send(env, "mine", 3)
        pass_time(env, timedelta(minutes=6))
        send(env, "mine", priority=5, begin=3)
        assert work(env, 2) == ["mine 0", "mine 1", "mine 2", "mine 3"]

    def test_what_is_given_back_has_its_place_again(self, env: WorkerEnv) -> None:
        send(env, "flood", 20)
        send(env, "single")
        held = take(env, 4)
        for message in held:
            assert async_to_sync(get_queue(env).release)(message)
        assert [message.subject for message in take(env, 4)] == [message.subject for message in held]


class TestComingBack:
    def test_failures_that_come_back_all_at_once_take_their_turns_again(
        self, env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(database, "_LOOK_SECONDS", 0.0)
        # The test before may have looked within the last second.
        monkeypatch.setattr(get_queue(env), "_next_look", {})
        send(env, "failing", 60)
        for message in take(env, 60):
            assert async_to_sync(get_queue(env).retry)(message, "the host is away", timedelta(hours=1))
        send(env, "flood", 200)
        work(env, 30)
        # All of them are available now, and had lower turns than the flood has reached.
        pass_time(env, timedelta(hours=2))
        send(env, "single")
        seen = work(env, 20)
        assert "single 0" in seen[: 3 * BATCH]
        taken = of_each(seen)
        assert abs(taken["failing"] - taken["flood"]) <= 2

    def test_a_failure_comes_back_behind_what_waits_of_its_publisher(self, env: WorkerEnv) -> None:
        send(env, "mine", 6)
        [message] = take(env, 1)
        assert async_to_sync(get_queue(env).retry)(message, "an error", timedelta())
        assert work(env, 2) == ["mine 1", "mine 2", "mine 3", "mine 4", "mine 5", "mine 0"]

    def test_a_message_of_a_dead_worker_keeps_its_turn(self, env: WorkerEnv) -> None:
        send(env, "mine", 10)
        assert [message.subject for message in take(env, 2)] == ["mine 0", "mine 1"]
        let_leases_end(env)
        assert [message.subject for message in take(env, 3)] == ["mine 0", "mine 1", "mine 2"]

    def test_a_message_that_begins_anew_takes_the_turn_of_its_new_publisher(self, env: WorkerEnv) -> None:
        send(env, "flood", 100)
        assert get_queue(env).send(env.name, KIND, "flood 99", publisher="another", restart=True)
        assert "flood 99" in work(env, 2)

    def test_messages_of_a_release_that_knew_no_turns_are_received_in_the_order_of_their_age(
        self, env: WorkerEnv
    ) -> None:
        old = [QueueMessage(environment=env.name, kind=KIND, subject=f"old {number}") for number in range(1100)]
        QueueMessage.objects.bulk_create(old)
        send(env, "single")
        first = work(env, 2)
        assert "single 0" in first
        everything = first + work(env, 40, 30)
        assert [one for one in everything if one.startswith("old")] == [f"old {number}" for number in range(1100)]

    def test_a_dead_letter_that_is_made_available_again_is_received(self, env: WorkerEnv) -> None:
        send(env, "mine")
        [message] = take(env)
        assert async_to_sync(get_queue(env).park)(message, "no use")
        assert unpark(env, KIND, "mine 0")
        assert work(env, 1) == ["mine 0"]


class TestPlace:
    def test_the_number_ahead_is_the_number_that_is_received_before(self, env: WorkerEnv) -> None:
        send(env, "flood", 12)
        send(env, "heavy", 12, weight=4.0)
        send(env, "flood", priority=5, begin=12)
        send(env, "single")
        subjects = QueueMessage.objects.values_list("subject", flat=True)
        ahead = {subject: count_ahead(env, subject) for subject in subjects}
        order = work(env, 26, 1)
        assert [ahead[subject] for subject in order] == list(range(26))

    def test_a_message_that_is_delayed_is_behind_all_that_have_a_turn(self, env: WorkerEnv) -> None:
        send(env, "flood", 12)
        send(env, "later", delay=timedelta(seconds=60))
        send(env, "later", begin=1, delay=timedelta(seconds=90))
        assert count_ahead(env, "later 0") == 12
        assert count_ahead(env, "later 1") == 13
        assert row(env, "later 0").turn is None


def _explained(env: WorkerEnv, statement: str, parameters: dict[str, Any]) -> list[str]:
    with connection.cursor() as cursor:
        prefix = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
        cursor.execute(f"{prefix} {statement}", parameters)
        return [str(found[-1]) for found in cursor.fetchall()]


class TestCost:
    @pytest.fixture
    def backlog(self, env: WorkerEnv) -> None:
        """Let a backlog wait of one flood and of a thousand publishers, with some that are delayed."""
        rows = [
            QueueMessage(
                environment=env.name, kind=KIND, subject=f"{number}", publisher=f"p{number % 1000 if number % 2 else 0}"
            )
            for number in range(6000)
        ]
        for number, one in enumerate(rows):
            one.turn = None if number % 10 == 0 else float(number)
        QueueMessage.objects.bulk_create(rows)
        QueueMessage.objects.filter(turn=None).update(available_at=F("available_at") + timedelta(hours=1))
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE")

    @pytest.mark.usefixtures("backlog")
    def test_a_claim_and_a_send_read_their_indexes_in_order_and_sort_nothing(self, env: WorkerEnv) -> None:
        sql = get_queue(env)._sql
        numbers = {"max_crashes": 3, "limit": 3, "lease": 90, "full_batch": 1, "oldest": 0}
        claim = _explained(
            env,
            sql.claim(isolated=False, parks=False),
            {"environment": env.name, "token": "t", "worker": "w", "reason": "", **numbers},
        )
        message = {"environment": env.name, "kind": KIND, "subject": "new", "publisher": "p0", "body": "{}"}
        sending = _explained(env, sql.send, {**message, "weight": 1.0, "priority": 0, "delay": 0.0, "due": 0.0})
        assert any("message_turn" in line for line in claim)
        assert any("message_of_publisher" in line for line in sending)
        assert any("message_turn" in line for line in sending)
        for line in claim + sending:
            assert "B-TREE" not in line, line
            assert "SCAN submissions_queuemessage" not in line, line
            assert "Sort" not in line, line
            assert "Seq Scan on submissions_queuemessage" not in line, line


async def test_turns_are_given_by_one_worker_at_a_time(env: WorkerEnv) -> None:
    await writers.run(send, env, "mine", 40, delay=timedelta(seconds=1))
    await writers.run(pass_time, env, timedelta(seconds=2))
    queue = get_queue(env)
    given = await asyncio.gather(*(writers.run(queue._give_turns, env.name) for _ in range(4)))
    assert given.count(True) == 1
    turns = [turn async for turn in QueueMessage.objects.order_by("turn").values_list("turn", flat=True)]
    assert turns == [float(turn) for turn in range(1, 41)]
