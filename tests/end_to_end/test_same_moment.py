"""Twenty concurrent submissions of one skill: one row, one message, one published version."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.db import connections

from marketplace.models import SkillVersion
from submissions.discovery import Discovery, discover
from submissions.intake import Outcome, accept_one
from submissions.models import QueueMessage, SubmissionEntry, SubmissionTransition
from tests.end_to_end.journey import WHOLE_WAY, address_of, consume, steps, stored, submit_by_api
from tests.git_factory import make_repository, skill_md
from vskill.environments import WorkerEnv

PEOPLE = 20

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "skills.git", {"hello-skill/SKILL.md": skill_md()})


async def test_twenty_requests_at_once_are_answered_with_one_submission(env: WorkerEnv, repository: Path) -> None:
    answers = await asyncio.gather(*(submit_by_api(repoUrl=address_of(repository)) for _ in range(PEOPLE)))
    assert Counter(status for status, _ in answers) == {202: 1, 200: PEOPLE - 1}
    assert len({body["id"] for _, body in answers}) == 1
    held = await stored(env)
    assert held.submissions == [("hello-skill", "RECEIVED")]
    assert held.messages == 1
    await consume(env)
    assert await steps(env, answers[0][1]["id"]) == WHOLE_WAY


def test_twenty_threads_with_connections_of_their_own_leave_one_row(env: WorkerEnv, repository: Path) -> None:
    discovery: Discovery = async_to_sync(discover)(env, address_of(repository))
    start = threading.Barrier(PEOPLE)

    def submit_one(_number: int) -> tuple[Outcome, str]:
        try:
            start.wait()
            answer = accept_one(env, discovery, discovery.skills[0], source="test", actor="somebody")
            assert answer.submission is not None
            return answer.outcome, answer.submission.id
        finally:
            connections.close_all()

    with ThreadPoolExecutor(PEOPLE) as people:
        answers = list(people.map(submit_one, range(PEOPLE)))
    assert Counter(outcome for outcome, _ in answers) == {Outcome.CREATED: 1, Outcome.DUPLICATE: PEOPLE - 1}
    assert len({submission_id for _, submission_id in answers}) == 1
    assert SubmissionEntry.objects.count() == 1
    assert SubmissionTransition.objects.count() == 1
    assert QueueMessage.objects.count() == 1


async def test_two_consumers_at_once_publish_it_once(env: WorkerEnv, repository: Path) -> None:
    _, answer = await submit_by_api(repoUrl=address_of(repository))
    await asyncio.gather(consume(env), consume(env))
    assert await steps(env, answer["id"]) == WHOLE_WAY
    assert await SkillVersion.objects.acount() == 1
