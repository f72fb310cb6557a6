"""The front door: what is accepted, what is known already, and what is refused."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.db import connections

from marketplace.skills.blocklist import BlockKind, add_block
from submissions.discovery import (
    DiscoveredSkill,
    Discovery,
    NoSkillFound,
    discover,
    select,
)
from submissions.intake import Accepted, Outcome, accept, accept_one
from submissions.models import QueueMessage, SubmissionEntry, SubmissionTransition
from submissions.states import State
from submissions.store.queries import read_submission
from submissions.store.transitions import transition
from tests.git_factory import commit, skill_md
from tests.submissions.front_door import drain, repository, skills, submitted, submitted_one
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_submission_its_history_and_its_message_are_there_together(env: WorkerEnv, tmp_path: Path) -> None:
    submission = await submitted_one(env, repository(tmp_path, skills("one")))

    assert submission.state is State.RECEIVED
    assert submission.id.startswith("sub_")
    assert len(submission.text("commitSha")) == 40
    message = await QueueMessage.objects.aget(subject=submission.id)
    assert message.environment == env.name
    step = await SubmissionTransition.objects.aget(submission_id=submission.id)
    assert (step.from_state, step.to_state, step.actor) == ("", State.RECEIVED, "tester")


async def test_every_skill_of_a_repository_becomes_a_submission(env: WorkerEnv, tmp_path: Path) -> None:
    answers = await submitted(env, repository(tmp_path, skills("one", "two", "three")))

    assert [(answer.skill.path, answer.outcome) for answer in answers] == [
        ("one", Outcome.CREATED),
        ("three", Outcome.CREATED),
        ("two", Outcome.CREATED),
    ]


async def test_a_skill_that_is_on_its_way_is_answered_with_its_submission(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, skills("one"))
    first = await submitted_one(env, url)
    (again,) = await submitted(env, url)

    assert again.outcome is Outcome.DUPLICATE
    assert again.submission is not None
    assert again.submission.id == first.id
    assert await QueueMessage.objects.acount() == 1


async def test_published_content_is_not_submitted_again_and_new_content_is(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, skills("one"))
    await submitted(env, url)
    await drain(env)
    (again,) = await submitted(env, url)
    commit(tmp_path / "repository.git", {"one/SKILL.md": skill_md("one", "Does something else now.")})
    (changed,) = await submitted(env, url)

    assert again.outcome is Outcome.ALREADY_VERIFIED
    assert changed.outcome is Outcome.CREATED


async def test_a_refused_skill_may_be_submitted_again(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, skills("one"))
    first = await submitted_one(env, url)
    held = await writers.run(
        transition, env, first, State.ON_HOLD, reason="looked at", actor="somebody", trigger="operator"
    )
    (while_held,) = await submitted(env, url)
    await writers.run(
        transition, env, held, State.REJECTED, reason="no", actor="somebody", trigger="operator", by_operator=True
    )
    (after,) = await submitted(env, url)

    assert while_held.outcome is Outcome.DUPLICATE
    assert after.outcome is Outcome.CREATED
    assert after.submission is not None
    assert after.submission.id != first.id


async def test_a_submission_that_lost_its_message_is_revived_by_submitting_it_again(
    env: WorkerEnv, tmp_path: Path
) -> None:
    url = repository(tmp_path, skills("one"))
    first = await submitted_one(env, url)
    await QueueMessage.objects.all().adelete()
    (again,) = await submitted(env, url)

    assert again.outcome is Outcome.DUPLICATE
    assert again.submission is not None
    assert again.submission.id == first.id
    assert await QueueMessage.objects.filter(subject=first.id).acount() == 1


async def test_a_blocked_repository_is_answered_as_blocked_and_leaves_nothing(env: WorkerEnv, tmp_path: Path) -> None:
    url = repository(tmp_path, skills("one"))
    discovery = await discover(env, url)
    await writers.run(add_block, env, BlockKind.REPO, discovery.repo_url, actor="somebody", reason="a copy of malware")
    (answer,) = await submitted(env, url)

    assert answer.outcome is Outcome.BLOCKED
    assert answer.reason == "a copy of malware"
    assert await SubmissionEntry.objects.acount() == 0
    assert await QueueMessage.objects.acount() == 0


async def test_a_broken_skill_stays_out_and_the_good_one_beside_it_goes_through(env: WorkerEnv, tmp_path: Path) -> None:
    answers = await submitted(env, repository(tmp_path, {**skills("good"), "bad/SKILL.md": "no frontmatter\n"}))

    outcomes = {answer.skill.path: answer for answer in answers}
    assert outcomes["good"].outcome is Outcome.CREATED
    assert outcomes["bad"].outcome is Outcome.INVALID
    assert "---" in outcomes["bad"].reason or "frontmatter" in outcomes["bad"].reason.lower()
    assert await SubmissionEntry.objects.acount() == 1


async def test_one_skill_is_chosen_by_its_folder_or_its_name(env: WorkerEnv, tmp_path: Path) -> None:
    discovery = await discover(env, repository(tmp_path, skills("one", "two")))

    assert [skill.path for skill in select(discovery, path="two/").skills] == ["two"]
    assert [skill.path for skill in select(discovery, path="two/SKILL.md").skills] == ["two"]
    assert [skill.path for skill in select(discovery, name="one").skills] == ["one"]
    with pytest.raises(NoSkillFound, match="It has: one, two"):
        select(discovery, name="three")


async def test_paths_that_were_not_listed_are_not_submitted(env: WorkerEnv, tmp_path: Path) -> None:
    discovery = await discover(env, repository(tmp_path, skills("one")))

    assert await accept(env, discovery, ["../../etc", "two"], source="test", actor="tester") == []
    assert await SubmissionEntry.objects.acount() == 0


@pytest.mark.parametrize("at_once", [20])
def test_many_submissions_of_one_skill_at_once_leave_one_row_and_one_message(
    env: WorkerEnv, tmp_path: Path, at_once: int
) -> None:
    discovery: Discovery = async_to_sync(discover)(env, repository(tmp_path, skills("one")))
    barrier = threading.Barrier(at_once)
    answers: list[Accepted] = []

    def submit_once() -> None:
        try:
            barrier.wait()
            answers.append(accept_one(env, discovery, discovery.skills[0], source="test", actor="tester"))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=submit_once) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    outcomes = sorted(answer.outcome for answer in answers)
    assert outcomes == [Outcome.CREATED] + [Outcome.DUPLICATE] * (at_once - 1)
    assert SubmissionEntry.objects.count() == 1
    assert QueueMessage.objects.count() == 1
    assert len({answer.submission.id for answer in answers if answer.submission}) == 1
    assert read_submission(env, SubmissionEntry.objects.get().submission_id).version == 1


def test_one_repository_under_two_spellings_is_one_submission(env: WorkerEnv) -> None:
    skill = DiscoveredSkill("skills/one", "one", "One.", (), "0" * 64)
    spellings = ("https://gitlab.com/Acme/Skills", "https://gitlab.com/acme/skills")
    first, second = (
        accept_one(env, Discovery(url, "0" * 40, (skill,)), skill, source="api", actor="tester") for url in spellings
    )

    assert (first.outcome, second.outcome) == (Outcome.CREATED, Outcome.DUPLICATE)
    assert first.submission == second.submission


def test_case_tells_repositories_apart_where_their_host_does(env: WorkerEnv) -> None:
    skill = DiscoveredSkill("skills/one", "one", "One.", (), "0" * 64)
    spellings = ("https://git.example.org/Acme/Skills", "https://git.example.org/acme/skills")
    for url in spellings:
        answer = accept_one(env, Discovery(url, "0" * 40, (skill,)), skill, source="api", actor="tester")
        assert answer.outcome is Outcome.CREATED
