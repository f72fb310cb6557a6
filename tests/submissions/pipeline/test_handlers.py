"""The handlers of the queue: waiting for others costs nobody a try, and what is given up is handed to a person."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from submissions.messages import VERIFY
from submissions.models import QueueMessage
from submissions.operations import requeue
from submissions.pipeline.handlers import hold
from submissions.pipeline.process import process_submission
from submissions.queue.base import Message
from submissions.queue.consumer import handle_submission_queue
from submissions.queue.settlement import Handler
from submissions.source import fetching
from submissions.states import State
from submissions.store.queries import get_submission
from tests.loop_time import WatchedPlaces, let_time_pass
from tests.submissions.factories import damage, make_submission
from tests.submissions.front_door import repository, skills, submitted_one
from tests.submissions.queue.consumers import Recorder
from tests.submissions.queue.messages import receive
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)


async def test_what_the_queue_gives_up_is_held_and_says_why(env: WorkerEnv, tmp_path: Path) -> None:
    submission = await submitted_one(env, repository(tmp_path, skills("one")))
    await QueueMessage.objects.filter(subject=submission.id).aupdate(parked_at=Now())
    await run_with_worker_env(env, hold, submission.id, "the host does not answer")
    await run_with_worker_env(env, hold, submission.id, "a second time")
    held = await get_submission(env, submission.id)

    assert held.state is State.ON_HOLD
    assert held.text("verdict") == "inconclusive"
    assert held.text("reason") == "it could not be checked: the host does not answer"


@pytest.mark.parametrize("state", [State.RECEIVED, State.TIER2_SCANNING, State.VENDOR_APPROVED, State.RESCAN_REQUIRED])
async def test_whatever_is_on_its_way_when_the_queue_gives_up_is_held(env: WorkerEnv, state: State) -> None:
    submission = await writers.run(make_submission, env, state)
    await run_with_worker_env(env, hold, submission.id, "the host does not answer")

    assert (await get_submission(env, submission.id)).state is State.ON_HOLD


async def test_the_verdict_outlasts_a_publication_that_the_queue_gives_up(env: WorkerEnv) -> None:
    submission = await writers.run(make_submission, env, State.AUTO_APPROVED, verdict="clear")
    await run_with_worker_env(env, hold, submission.id, "the disk is full")
    held = await get_submission(env, submission.id)

    assert held.text("verdict") == "clear"
    assert held.text("reason") == "it could not be published: the disk is full"


async def test_what_an_operator_puts_back_while_the_queue_gives_up_keeps_its_place(env: WorkerEnv) -> None:
    submission = await writers.run(make_submission, env, State.TIER1_SCANNING)
    await writers.run(requeue, env, submission.id, actor="operator", reason="the host is back")
    await run_with_worker_env(env, hold, submission.id, "the host does not answer")

    assert (await get_submission(env, submission.id)).state is State.TIER1_SCANNING
    assert await QueueMessage.objects.filter(subject=submission.id, parked_at=None).acount() == 1


async def test_a_damaged_submission_that_the_queue_gives_up_is_left_as_it_is_and_named(
    env: WorkerEnv, caplog: pytest.LogCaptureFixture
) -> None:
    submission = await writers.run(make_submission, env, State.RECEIVED)
    await writers.run(damage, env, submission.id)
    await run_with_worker_env(env, hold, submission.id, "it cannot be read")

    assert f"{submission.id} cannot be held" in caplog.text


@pytest.mark.parametrize("what", ["fetch", "scan"])
async def test_to_wait_until_others_are_done_is_no_error_however_long_it_takes(
    env: WorkerEnv, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    submission = await submitted_one(env, repository(tmp_path, skills("one")))
    places = WatchedPlaces()
    if what == "fetch":
        monkeypatch.setattr(fetching, "fetch_slots", lambda: places)

    async def verify(message: Message) -> None:
        await process_submission(message.subject, slots=places)

    handlers = {VERIFY: Handler(verify, Recorder().give_up)}
    handling = asyncio.create_task(handle_submission_queue(await receive(env), env, handlers=handlers))
    await places.asked.wait()
    await let_time_pass(10 * settings.QUEUE_MESSAGE_LIMIT)
    places.add_one()
    report = await handling

    assert report.ends == {"done": 1}
    assert (await get_submission(env, submission.id)).state is State.PUBLISHED
