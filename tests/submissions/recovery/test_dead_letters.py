"""Dead letters are listed with their reason, and tried again on request with their counters reset."""

from __future__ import annotations

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async

from submissions.messages import VERIFY
from submissions.models import QueueMessage
from submissions.operations import retry
from submissions.queue.database import get_queue
from submissions.recovery.dead_letters import DeadLetter, dead_letters
from submissions.recovery.sweep import recover_stuck
from submissions.states import State
from submissions.store.queries import read_submission
from tests.submissions.factories import make_submission, messages_of
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async


async def parked(env: WorkerEnv, kind: str, subject: str, reason: str) -> None:
    """Send a message and park it."""
    await in_thread(get_queue(env).send)(env.name, kind, subject)
    [message] = (await get_queue(env).receive(env.name, 1, worker="test")).messages
    assert await get_queue(env).park(message, reason)


async def exhausted(env: WorkerEnv) -> str:
    """Return a submission that recovery has given up."""
    made = await in_thread(make_submission)(env, age=timedelta(hours=1))
    await KVNamespace(KVEntry, env).put(f"recovery:{made.id}", {"attempts": 3})
    await recover_stuck(env)
    return made.id


async def test_parked_messages_and_exhausted_submissions_are_listed_and_others_are_not(env: WorkerEnv) -> None:
    await in_thread(make_submission)(env, State.ON_HOLD, reason="a person must decide")
    await in_thread(make_submission)(env, message=True)
    await QueueMessage.objects.all().adelete()
    await parked(env, "unknown", "one", "nobody knows it")
    given_up = await exhausted(env)
    assert await in_thread(dead_letters)(env) == [
        DeadLetter("unknown", "one", "nobody knows it"),
        DeadLetter(VERIFY, given_up, "recovery_exhausted"),
    ]


async def test_a_submission_that_both_gave_up_is_listed_once(env: WorkerEnv) -> None:
    given_up = await exhausted(env)
    await parked(env, VERIFY, given_up, "it failed three times")
    assert await in_thread(dead_letters)(env) == [DeadLetter(VERIFY, given_up, "it failed three times")]


async def test_a_submission_is_checked_again_with_its_failures_forgotten(env: WorkerEnv) -> None:
    given_up = await exhausted(env)
    [work] = await in_thread(dead_letters)(env)
    assert await in_thread(retry)(env, work.kind, work.subject, actor="operator", reason="the disk is new")
    after = await in_thread(read_submission)(env, given_up)
    assert (after.state, after.text("reason")) == (State.RECEIVED, "the disk is new")
    [message] = await in_thread(messages_of)(env, given_up)
    assert (message.parked_at, message.errors, message.crashes) == (None, 0, 0)
    assert (await KVNamespace(KVEntry, env).get(f"recovery:{given_up}")).absent
    assert await in_thread(dead_letters)(env) == []


async def test_a_message_of_another_kind_is_put_back_as_it_was_sent(env: WorkerEnv) -> None:
    await parked(env, "unknown", "one", "nobody knows it")
    [work] = await in_thread(dead_letters)(env)
    assert await in_thread(retry)(env, work.kind, work.subject, actor="operator", reason="")
    [message] = (await get_queue(env).receive(env.name, 9, worker="test")).messages
    assert (message.kind, message.subject, message.errors) == ("unknown", "one", 0)
    assert not await in_thread(retry)(env, work.kind, work.subject, actor="operator", reason=""), (
        "one is in work already"
    )


@pytest.mark.parametrize("state", [None, State.PUBLISHED])
async def test_nothing_is_left_to_do_for_what_is_gone_or_published(env: WorkerEnv, state: State | None) -> None:
    subject = (await in_thread(make_submission)(env, state)).id if state else "sub_gone"
    await parked(env, VERIFY, subject, "late")
    [work] = await in_thread(dead_letters)(env)
    assert not await in_thread(retry)(env, work.kind, work.subject, actor="operator", reason="")
