"""The queue in the database: who gets which message, under which lease, and what settling it changes."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from pytest_django import Settings

from submissions.queue.base import InvalidMessage, Message
from submissions.queue.database import get_queue
from submissions.queue.statements import AGING
from tests.submissions.queue.messages import (
    KIND,
    let_leases_end,
    pass_time,
    receive,
    receive_one,
    received,
    row,
    send,
)
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async


class TestSending:
    def test_a_message_of_a_kind_and_subject_is_sent_once(self, env: WorkerEnv) -> None:
        queue = get_queue(env)
        assert queue.send(env.name, KIND, "one")
        assert not queue.send(env.name, KIND, "one")
        assert queue.send(env.name, "another_kind", "one")
        assert queue.send("another-environment", KIND, "one")

    def test_a_message_goes_with_the_transaction_of_what_it_is_about(self, env: WorkerEnv) -> None:
        with transaction.atomic(using=env.database):
            send(env, "one")
            transaction.set_rollback(True, using=env.database)
        assert get_queue(env).count(env.name).waiting == 0

    def test_a_second_message_leaves_the_transaction_usable(self, env: WorkerEnv) -> None:
        send(env, "one")
        with transaction.atomic(using=env.database):
            assert not get_queue(env).send(env.name, KIND, "one")
            send(env, "two")
        assert get_queue(env).count(env.name).waiting == 2

    async def test_a_parked_message_does_not_stand_in_the_way_of_a_new_one(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one")
        await get_queue(env).park(await receive_one(env), "it will never work")
        assert await in_thread(get_queue(env).send)(env.name, KIND, "one")

    async def test_a_body_arrives_as_it_was_sent(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one", body={"text": "ä\0\ud83d", "number": 1})
        assert (await receive_one(env)).decoded() == {"text": "ä\0\ud83d", "number": 1}


class TestOrder:
    async def test_the_oldest_comes_first(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one", "two", "three")
        assert await received(env, 2) == ["one", "two"]
        assert await received(env, 2) == ["three"]

    async def test_a_higher_priority_comes_first(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "low", priority=-1)
        await in_thread(send)(env, "usual one", "usual two")
        await in_thread(send)(env, "high", priority=5)
        assert await received(env) == ["high", "usual one", "usual two", "low"]

    async def test_waiting_is_worth_as_much_as_priority_so_that_nothing_starves(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "patient")
        await in_thread(pass_time)(env, timedelta(seconds=5 * AGING - 1))
        await in_thread(send)(env, "urgent", priority=5)
        assert await received(env, 1) == ["urgent"]
        await in_thread(pass_time)(env, timedelta(seconds=2))
        await in_thread(send)(env, "urgent too", priority=5)
        assert await received(env, 1) == ["patient"]

    async def test_a_delayed_message_is_received_when_its_time_has_come(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "later", delay=timedelta(seconds=60))
        assert await received(env) == []
        await in_thread(pass_time)(env, timedelta(seconds=59))
        assert await received(env) == []
        await in_thread(pass_time)(env, timedelta(seconds=2))
        assert await received(env) == ["later"]

    async def test_environments_do_not_see_each_other(self, env: WorkerEnv) -> None:
        await in_thread(get_queue(env).send)("another-environment", KIND, "theirs")
        assert await received(env) == []

    async def test_few_messages_wait_for_a_full_batch_and_no_longer_than_the_wait(self, env: WorkerEnv) -> None:
        wait = timedelta(seconds=5)

        async def taken() -> int:
            batch = await get_queue(env).receive(env.name, 6, worker="test", full_batch=3, fill_wait=wait)
            return len(batch.messages)

        await in_thread(send)(env, "one", "two")
        assert await taken() == 0
        await in_thread(pass_time)(env, wait)
        assert await taken() == 2
        await in_thread(send)(env, "three", "four", "five")
        assert await taken() == 3


class TestLeases:
    async def test_a_leased_message_is_nobody_elses(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one")
        assert await received(env) == ["one"]
        assert await received(env) == []

    async def test_many_claimers_get_every_message_once(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, *[f"subject {number}" for number in range(60)])
        claims = await asyncio.gather(*(received(env, 7) for _ in range(12)))
        subjects = [subject for claim in claims for subject in claim]
        assert len(subjects) == len(set(subjects)) == 60

    async def test_a_message_whose_worker_died_comes_back_counted(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one")
        first = await receive_one(env)
        await in_thread(let_leases_end)(env)
        again = await receive_one(env)
        assert (first.crashes, again.crashes, again.errors) == (0, 1, 0)
        assert first.token != again.token

    async def test_a_lease_is_extended_for_those_that_hold_it(self, env: WorkerEnv, settings: Settings) -> None:
        settings.QUEUE_LEASE = 100.0
        await in_thread(send)(env, "one", "two")
        kept, stale = (await receive(env)).messages
        stale = Message(**{**stale.__dict__, "token": "of another lease"})
        await in_thread(pass_time)(env, timedelta(seconds=99))
        assert await get_queue(env).extend([kept, stale]) == {kept.id}
        await in_thread(pass_time)(env, timedelta(seconds=99))
        assert await received(env) == ["two"]

    async def test_a_lease_that_has_run_out_is_not_extended(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one")
        message = await receive_one(env)
        await in_thread(let_leases_end)(env)
        assert await get_queue(env).extend([message]) == set()

    async def test_what_kills_its_worker_again_and_again_is_parked(self, env: WorkerEnv, settings: Settings) -> None:
        settings.QUEUE_MAX_CRASHES = 3
        await in_thread(send)(env, "killer")
        for _death in range(2):
            assert await received(env) == ["killer"]
            await in_thread(let_leases_end)(env)
        # Two deaths: the third attempt is the last, and only for those who ask for isolated messages.
        assert await received(env) == []
        assert [one.crashes for one in (await receive(env, isolated=True)).messages] == [2]
        await in_thread(let_leases_end)(env)

        batch = await receive(env, isolated=True)

        assert [one.subject for one in batch.parked] == ["killer"]
        assert batch.messages == ()
        parked = await in_thread(row)(env, "killer")
        assert parked.parked_at is not None
        assert (parked.crashes, parked.lease_token, parked.leased_until) == (3, "", None)
        assert parked.last_error == "its worker did not come back 3 times"

    @pytest.mark.parametrize("allowed", [1, 2, 3])
    async def test_a_message_is_parked_after_as_many_crashes_as_are_allowed(
        self, env: WorkerEnv, settings: Settings, allowed: int
    ) -> None:
        settings.QUEUE_MAX_CRASHES = allowed
        await in_thread(send)(env, "killer")
        attempts = 0
        abandoned: list[Message] = []
        for isolated in [False, True] * (allowed + 1):
            batch = await receive(env, isolated=isolated)
            attempts += len(batch.messages)
            abandoned += batch.parked
            await in_thread(let_leases_end)(env)

        assert attempts == allowed
        assert [one.subject for one in abandoned] == ["killer"]
        parked = await in_thread(row)(env, "killer")
        assert (parked.crashes, parked.leased_until, parked.parked_at is None) == (allowed, None, False)

    async def test_isolated_messages_are_received_by_those_alone_who_ask_for_them(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "killer", "neighbour")
        for _death in range(2):
            await receive(env)
            await in_thread(let_leases_end)(env)
        await in_thread(send)(env, "fresh")
        assert await received(env) == ["fresh"]
        assert [one.subject for one in (await receive(env, 1, isolated=True)).messages] == ["killer"]
        assert [one.subject for one in (await receive(env, 1, isolated=True)).messages] == ["neighbour"]


class TestSettling:
    async def test_an_acknowledged_message_is_gone(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one")
        assert await get_queue(env).acknowledge(await receive_one(env))
        await in_thread(let_leases_end)(env)
        assert await received(env) == []

    async def test_messages_acknowledged_together_are_each_told_of_their_own(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, *[f"subject {number}" for number in range(40)])
        queue = get_queue(env)
        messages = (await receive(env)).messages
        stale = [Message(**{**message.__dict__, "token": "old"}) for message in messages[::2]]
        answers = await asyncio.gather(*(queue.acknowledge(message) for message in [*stale, *messages[1::2]]))
        assert answers == [False] * 20 + [True] * 20
        assert (await queue.status(env.name)).leased == 20

    async def test_an_error_is_counted_and_the_message_comes_back_later(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one")
        assert await get_queue(env).retry(await receive_one(env), "no\0answer", timedelta(seconds=10))
        assert await received(env) == []
        await in_thread(pass_time)(env, timedelta(seconds=11))
        again = await receive_one(env)
        assert (again.errors, again.crashes) == (1, 0)
        assert (await in_thread(row)(env, "one")).last_error == "no\N{REPLACEMENT CHARACTER}answer"

    async def test_a_message_given_back_keeps_its_place_and_its_counts(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one", "two")
        [message] = (await receive(env, 1)).messages
        before = await in_thread(row)(env, "one")
        assert await get_queue(env).release(message)
        after = await in_thread(row)(env, "one")
        assert (after.available_at, after.due_at, after.errors, after.crashes) == (
            before.available_at,
            before.due_at,
            0,
            0,
        )
        assert await received(env) == ["one", "two"]

    async def test_a_parked_message_is_kept_with_its_reason_and_not_received(self, env: WorkerEnv) -> None:
        await in_thread(send)(env, "one")
        assert await get_queue(env).park(await receive_one(env), "it will never work")
        await in_thread(let_leases_end)(env)
        assert await received(env) == []
        assert (await in_thread(row)(env, "one")).last_error == "it will never work"
        assert (await get_queue(env).status(env.name)).parked == 1

    @pytest.mark.parametrize("settle", ["acknowledge", "release", "retry", "park"])
    async def test_a_token_of_an_earlier_lease_changes_nothing(self, env: WorkerEnv, settle: str) -> None:
        await in_thread(send)(env, "one")
        late = await receive_one(env)
        await in_thread(let_leases_end)(env)

        assert not await self.settle(env, late, settle), "its lease has run out"
        current = await receive_one(env)
        before = (await in_thread(row)(env, "one")).__dict__
        assert not await self.settle(env, late, settle), "another worker has it"

        after = (await in_thread(row)(env, "one")).__dict__
        assert {**after, "_state": None} == {**before, "_state": None}
        assert await get_queue(env).acknowledge(current)

    async def settle(self, env: WorkerEnv, message: Message, how: str) -> bool:
        queue = get_queue(env)
        if how == "retry":
            return await queue.retry(message, "late", timedelta())
        if how == "park":
            return await queue.park(message, "late")
        return await (queue.acknowledge(message) if how == "acknowledge" else queue.release(message))


async def test_the_status_counts_each_message_once(env: WorkerEnv) -> None:
    queue = get_queue(env)
    await in_thread(send)(env, "leased", "parked")
    _leased, parked = (await receive(env)).messages
    await queue.park(parked, "no")
    await in_thread(send)(env, "waiting one", "waiting two")
    await in_thread(send)(env, "delayed", delay=timedelta(hours=1))
    status = await queue.status(env.name)
    assert (status.waiting, status.delayed, status.leased, status.parked) == (2, 1, 1, 1)
    assert status.oldest_at == (await in_thread(row)(env, "waiting one")).available_at


@pytest.mark.parametrize("body", ['{"cut off', "[1]", '"text"', "[" * 100_000], ids=["cut", "list", "text", "deep"])
def test_a_body_that_is_no_object_is_an_invalid_message(body: str) -> None:
    with pytest.raises(InvalidMessage, match="message 7"):
        Message(7, "default", KIND, "one", body, "token", 0, 0).decoded()


async def test_a_message_that_begins_anew_is_no_longer_the_old_holders(env: WorkerEnv) -> None:
    queue = get_queue(env)
    await in_thread(send)(env, "one")
    (held,) = (await queue.receive(env.name, 1, worker="first")).messages
    await queue.retry(held, "an error", timedelta())
    (held,) = (await queue.receive(env.name, 1, worker="first")).messages

    assert not await in_thread(queue.send)(env.name, KIND, "one")
    assert await in_thread(queue.send)(env.name, KIND, "one", priority=3, restart=True)
    assert not await queue.acknowledge(held)
    (again,) = (await queue.receive(env.name, 1, worker="second")).messages
    assert (again.id, again.errors, again.crashes) == (held.id, 0, 0)
    assert await queue.acknowledge(again)
