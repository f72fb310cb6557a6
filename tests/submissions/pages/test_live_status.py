"""Server-sent events of a submission: each change once, an end, and no stream more than the server can hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any, cast

import pytest
from django.http import StreamingHttpResponse
from django.test import AsyncClient, Client

from marketplace.models import SkillEntry
from marketplace.skills.audience import show_to_everybody, show_to_members
from submissions.models import SubmissionEntry
from submissions.pages import live_status
from submissions.states import State
from submissions.store.records import Submission
from submissions.store.transitions import transition
from tests.marketplace.factories import publish_example
from tests.submissions.factories import make_submission
from tests.vskill.sign_in.test_access import signed_in
from vskill.accounts.audiences import MEMBERS
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _short_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_status, "SECONDS_BETWEEN", 0.001)


async def opened(submission_id: str, client: AsyncClient | None = None) -> AsyncIterator[str]:
    response = await (client or AsyncClient()).get(f"/submissions/{submission_id}/events")
    assert response.status_code == 200
    assert response["Content-Type"] == "text/event-stream"
    assert response["Cache-Control"] == "no-store"
    streamed = cast(StreamingHttpResponse, response)
    return (part.decode() async for part in cast(AsyncIterator[bytes], streamed.streaming_content))


def read(part: str) -> tuple[str, dict[str, Any]]:
    name, data = part.strip().split("\n")
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def move(env: WorkerEnv, submission: Submission, following: State) -> Submission:
    return transition(env, submission, following, reason="a test", actor="test", trigger="test")


async def test_each_change_is_told_once_and_a_decision_ends_the_stream(env: WorkerEnv) -> None:
    submission = await writers.run(make_submission, env)
    stream = await opened(submission.id)
    assert read(await anext(stream))[1]["state"] == State.RECEIVED
    for following in (State.TIER1_SCANNING, State.TIER1_FAILED):
        submission = await writers.run(move, env, submission, following)
        name, told = read(await anext(stream))
        assert (name, told["state"]) == ("change", following)
    assert read(await anext(stream))[0] == "end"
    assert [part async for part in stream] == []
    assert live_status._Open.count == 0


def private_submission(env: WorkerEnv) -> tuple[Submission, AsyncClient]:
    """Write a new submission of a skill for members, and return it with the client of a member."""
    publish_example(env, audience=MEMBERS)
    submission = make_submission(env, identity=SkillEntry.objects.get().identity)
    client = AsyncClient()
    client.cookies = signed_in("viewer").cookies
    return submission, client


async def test_a_member_follows_a_submission_of_a_private_skill_to_its_end(env: WorkerEnv) -> None:
    submission, member = await writers.run(private_submission, env)
    assert (await AsyncClient().get(f"/submissions/{submission.id}/events")).status_code == 404
    stream = await opened(submission.id, member)
    told = [read(await anext(stream))]
    for following in (State.TIER1_SCANNING, State.TIER1_FAILED):
        submission = await writers.run(move, env, submission, following)
        told.append(read(await anext(stream)))
    assert [(name, one["state"]) for name, one in told] == [
        ("change", state) for state in (State.RECEIVED, State.TIER1_SCANNING, State.TIER1_FAILED)
    ]
    assert [read(part)[0] async for part in stream] == ["end"]


async def test_a_skill_that_is_closed_ends_the_stream_of_a_stranger(env: WorkerEnv) -> None:
    submission, _member = await writers.run(private_submission, env)
    await writers.run(show_to_everybody, env, "hello-skill", actor="operator", reason="for all")
    stream = await opened(submission.id)
    await anext(stream)
    await writers.run(show_to_members, env, "hello-skill", actor="operator", reason="ours")
    assert [read(part)[0] async for part in stream] == ["end"]


async def test_a_submission_that_is_decided_already_is_told_and_over(env: WorkerEnv) -> None:
    submission = await writers.run(make_submission, env, State.PUBLISHED)
    assert [read(part)[0] async for part in await opened(submission.id)] == ["change", "end"]


async def test_a_silent_stream_says_that_it_lives_and_ends_in_time(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_status, "SECONDS_OF_SILENCE", 0.0)
    monkeypatch.setattr(live_status, "SECONDS_AT_MOST", 0.05)
    submission = await writers.run(make_submission, env)
    first, *rest = [part async for part in await opened(submission.id)]
    assert read(first)[0] == "change"
    assert set(rest) == {": still here\n\n"}


async def test_who_leaves_gives_his_place_free(env: WorkerEnv) -> None:
    submission = await writers.run(make_submission, env)
    stream = await opened(submission.id)
    await anext(stream)
    assert live_status._Open.count == 1
    # As the server does with the task of a request whose client has left.
    waiting = asyncio.ensure_future(cast(Coroutine[Any, Any, str], anext(stream)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert live_status._Open.count == 0


async def test_a_submission_that_vanishes_ends_the_stream(env: WorkerEnv) -> None:
    submission = await writers.run(make_submission, env)
    stream = await opened(submission.id)
    await anext(stream)
    await writers.run(SubmissionEntry.objects.all().delete)
    assert [read(part)[0] async for part in stream] == ["end"]


async def test_over_the_limit_a_page_is_told_to_ask_by_itself(env: WorkerEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_status, "MOST_AT_ONCE", 0)
    submission = await writers.run(make_submission, env)
    response = await AsyncClient().get(f"/submissions/{submission.id}/events")
    assert (response.status_code, response["Retry-After"]) == (503, "60")


async def test_an_unknown_submission_has_no_events(env: WorkerEnv) -> None:
    assert (await AsyncClient().get("/submissions/sub_nothing/events")).status_code == 404


def test_a_server_that_cannot_hold_a_stream_open_says_so(env: WorkerEnv) -> None:
    assert Client().get(f"/submissions/{make_submission(env).id}/events").status_code == 503
