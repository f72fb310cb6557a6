"""A job of many skills: accepted whole, once, whoever works on it and whoever is killed; and stopped."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db.models.functions import Now

from marketplace.skills.blocklist import BlockKind, add_block
from submissions.discovery import DiscoveredSkill, Discovery, discover
from submissions.intake import Outcome, accept, accept_one
from submissions.jobs import work
from submissions.jobs.progress import Progress, progress_of
from submissions.jobs.records import SLICE, Job, JobNotFound, JobState, get_job, job_key, may_stop, slice_key, stop_key
from submissions.jobs.work import PRIORITY, fail_job, run_job, start_job, step, stop_job, take_in
from submissions.messages import SUBMIT_JOB, VERIFY
from submissions.models import QueueMessage, SubmissionEntry
from submissions.operations import retry
from submissions.pipeline.handlers import make_handlers
from submissions.queue.base import Message
from submissions.states import State
from submissions.store.queries import get_submission, read_submission
from submissions.store.transitions import transition
from submissions.submitter import SUBMITTER_NUMBER
from tests.submissions.factories import damage
from tests.submissions.front_door import drain, repository, skills
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.threads import writers
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 2 * SLICE + 10


def found(count: int = MANY) -> Discovery:
    made = tuple(
        DiscoveredSkill(f"skills/s{number:04}", f"s{number:04}", "Does it.", (), f"{number:064}")
        for number in range(count)
    )
    return Discovery("https://github.com/acme/skills", "1" * 40, made, "HEAD")


async def started(env: WorkerEnv, discovery: Discovery | None = None) -> Job:
    discovery = discovery or found()
    return await writers.run(start_job, env, discovery, source="api", actor="tester")


async def progress(env: WorkerEnv, job: Job) -> Progress:
    return await progress_of(env, await get_job(env, job.id), size=10_000)


async def messages(kind: str) -> int:
    return await QueueMessage.objects.filter(kind=kind).acount()


async def test_a_job_and_its_message_are_there_together_and_nothing_is_submitted_yet(env: WorkerEnv) -> None:
    job = await started(env)

    assert (await get_job(env, job.id)).state is JobState.ACCEPTING
    assert await messages(SUBMIT_JOB) == 1
    assert await SubmissionEntry.objects.acount() == 0
    seen = await progress(env, job)
    assert (seen.handled, seen.standings, seen.finished) == (0, {"waiting": MANY}, False)


async def test_its_submissions_are_of_the_account_that_began_it_whoever_has_its_name_by_then(env: WorkerEnv) -> None:
    accounts = get_user_model()._default_manager
    ada = await sync_to_async(accounts.create_user)("ada")
    job = await writers.run(start_job, env, found(3), source="api", actor="tester", submitter="ada")
    number = ada.pk
    await ada.adelete()
    await sync_to_async(accounts.create_user)("ada", pk=number + 1)
    await run_job(env, job.id)
    ids = [entry.submission_id async for entry in SubmissionEntry.objects.all()]
    stored = [await get_submission(env, one) for one in ids]
    assert [one.value[SUBMITTER_NUMBER] for one in stored] == [number] * 3


async def test_a_job_from_before_a_field_was_there_goes_on(env: WorkerEnv) -> None:
    job = await started(env, found(3))
    entries = KVNamespace(KVEntry, env)
    value = (await entries.get(job_key(job.id))).require()
    assert isinstance(value, dict)
    del value["submitter_number"]
    await writers.run(entries.put_sync, job_key(job.id), value)
    assert (await run_job(env, job.id)).state is JobState.ACCEPTED


async def test_a_consumer_accepts_every_skill_once(env: WorkerEnv) -> None:
    job = await started(env)
    await run_job(env, job.id)
    ended = await run_job(env, job.id)

    assert (ended.state, ended.done) == (JobState.ACCEPTED, 3)
    assert await SubmissionEntry.objects.acount() == MANY
    assert await QueueMessage.objects.filter(kind=VERIFY, priority=PRIORITY).acount() == MANY
    seen = await progress(env, job)
    assert (seen.handled, seen.outcomes, seen.standings) == (MANY, {"created": MANY}, {"active": MANY})


async def test_real_skills_go_from_the_job_to_their_publication(env: WorkerEnv, tmp_path: Path) -> None:
    files = {**skills(*(f"s{number}" for number in range(3))), "bad/SKILL.md": "no frontmatter\n"}
    discovery = await discover(env, repository(tmp_path, files))
    job = await started(env, discovery)
    await drain(env)

    seen = await progress(env, job)
    assert seen.standings == {"published": 3, "invalid": 1}
    assert seen.finished
    assert [line.skill.outcome for line in seen.lines] == ["invalid", "created", "created", "created"]


async def test_few_skills_are_accepted_at_once_and_many_are_a_job(env: WorkerEnv) -> None:
    few, many = found(work.AT_ONCE), found(work.AT_ONCE + 1)
    answers = await take_in(env, few, source="api", actor="tester")
    job = await take_in(env, many, source="api", actor="tester")

    assert isinstance(answers, list)
    assert {answer.outcome for answer in answers} == {Outcome.CREATED}
    assert isinstance(job, Job)
    await run_job(env, job.id)
    seen = await progress(env, job)
    assert seen.outcomes == {"duplicate": work.AT_ONCE, "created": 1}


async def test_an_internal_skill_is_left_out_of_a_job_unless_it_is_picked(env: WorkerEnv) -> None:
    discovery = found(3)
    hidden = replace(discovery.skills[1], internal=True)
    discovery = replace(discovery, skills=(discovery.skills[0], hidden, discovery.skills[2]))
    offered = await started(env, discovery)
    await run_job(env, offered.id)
    assert (await progress(env, offered)).outcomes == {"created": 2, "internal": 1}

    picked = await writers.run(start_job, env, discovery, source="form", actor="tester", picked=[hidden])
    await run_job(env, picked.id)
    assert (await progress(env, picked)).outcomes == {"created": 1}


async def test_a_process_that_is_killed_inside_a_slice_leaves_nothing_of_it(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await started(env)
    await step(env, job.id)
    left = [5]

    def killed_after_five(*args: object, **kwargs: object) -> object:
        if not left[0]:
            raise SystemExit("killed")
        left[0] -= 1
        return accept_one(*args, **kwargs)  # type: ignore[arg-type]  # what it was given

    monkeypatch.setattr(work, "accept_one", killed_after_five)
    with pytest.raises(SystemExit):
        await step(env, job.id)
    monkeypatch.undo()

    assert await SubmissionEntry.objects.acount() == SLICE
    assert (await progress(env, job)).handled == SLICE
    await run_job(env, job.id)
    assert await SubmissionEntry.objects.acount() == MANY
    assert (await progress(env, job)).outcomes == {"created": MANY}


async def test_two_processes_at_once_accept_each_skill_once(env: WorkerEnv) -> None:
    job = await started(env)

    await asyncio.gather(*(run_job(env, job.id) for _ in range(4)))

    assert await SubmissionEntry.objects.acount() == MANY
    assert (await progress(env, job)).outcomes == {"created": MANY}


async def test_what_is_known_blocked_or_broken_is_answered_like_everywhere(env: WorkerEnv) -> None:
    discovery = found(4)
    await accept(env, discovery, ["skills/s0000"], source="api", actor="tester")
    broken = replace(discovery.skills[1], problems=("SKILL.md is empty",))
    job = await started(env, replace(discovery, skills=(discovery.skills[0], broken)))
    await run_job(env, job.id)
    await writers.run(add_block, env, BlockKind.REPO, discovery.repo_url, actor="somebody", reason="a copy of malware")
    blocked = await started(env, discovery)
    await run_job(env, blocked.id)

    assert (await progress(env, job)).outcomes == {"duplicate": 1, "invalid": 1}
    assert (await progress(env, blocked)).outcomes == {"blocked": 4}


async def test_a_skill_whose_entry_is_damaged_does_not_keep_the_others_out(env: WorkerEnv) -> None:
    discovery = found(3)
    [answer] = await accept(env, discovery, ["skills/s0001"], source="api", actor="tester")
    assert answer.submission is not None
    await writers.run(damage, env, answer.submission.id)
    job = await started(env, discovery)

    assert (await run_job(env, job.id)).state is JobState.ACCEPTED
    seen = await progress(env, job)
    assert seen.outcomes == {"created": 2, "failed": 1}
    assert seen.lines[1].skill.reason


async def test_a_job_that_is_stopped_early_submits_no_more(env: WorkerEnv) -> None:
    job = await started(env)
    await step(env, job.id)
    await writers.run(stop_job, env, job.id)
    ended = await run_job(env, job.id)

    assert ended.state is JobState.STOPPED
    seen = await progress(env, job)
    assert seen.outcomes == {"created": SLICE, "stopped": MANY - SLICE}
    assert seen.standings == {"rejected": SLICE, "stopped": MANY - SLICE}
    assert seen.finished
    assert await SubmissionEntry.objects.filter(state=State.DEQUEUED).acount() == SLICE


async def test_stopping_withdraws_what_waits_and_leaves_what_is_in_work_held_or_of_others(env: WorkerEnv) -> None:
    discovery = found(4)
    [before] = await accept(env, discovery, ["skills/s0000"], source="api", actor="somebody else")
    job = await started(env, discovery)
    await run_job(env, job.id)
    [_, in_work, held, _] = [line.skill.submission_id for line in (await progress(env, job)).lines]

    def move(submission_id: str, state: State) -> None:
        transition(env, read_submission(env, submission_id), state, reason="", actor="tester", trigger="test")

    await writers.run(move, in_work, State.TIER1_SCANNING)
    await writers.run(move, held, State.ON_HOLD)
    await writers.run(stop_job, env, job.id)
    await run_job(env, job.id)

    states = [line.state for line in (await progress(env, job)).lines]
    assert states == [State.RECEIVED, State.TIER1_SCANNING, State.ON_HOLD, State.DEQUEUED]
    assert before.submission is not None
    assert (await get_submission(env, before.submission.id)).state is State.RECEIVED


async def test_stopping_a_job_whose_message_is_gone_queues_it_again(env: WorkerEnv) -> None:
    job = await started(env)
    await run_job(env, job.id)
    await QueueMessage.objects.all().adelete()

    await writers.run(stop_job, env, job.id)
    assert await messages(SUBMIT_JOB) == 1
    await drain(env)

    assert (await get_job(env, job.id)).state is JobState.STOPPED
    again = await writers.run(stop_job, env, job.id)
    assert again.state is JobState.STOPPED
    assert await messages(SUBMIT_JOB) == 0


async def test_a_job_that_was_given_up_says_why_and_goes_on_when_it_is_retried(env: WorkerEnv) -> None:
    job = await started(env)
    await step(env, job.id)
    await writers.run(fail_job, env, job.id, "the disk was full")

    assert (await get_job(env, job.id)).failure == "the disk was full"
    await QueueMessage.objects.filter(kind=SUBMIT_JOB).aupdate(parked_at=Now())
    assert await writers.run(retry, env, SUBMIT_JOB, job.id, actor="somebody", reason="there is room now")
    await run_job(env, job.id)

    ended = await get_job(env, job.id)
    assert (ended.state, ended.failure) == (JobState.ACCEPTED, "")


async def test_a_consumer_that_parks_a_job_notes_why(env: WorkerEnv) -> None:
    job = await started(env)
    parked = make_handlers()[SUBMIT_JOB].on_parked
    message = Message(1, env.name, SUBMIT_JOB, job.id, "{}", "token", 0, 3)

    await run_with_worker_env(env, parked, message, "it killed its worker")

    assert (await get_job(env, job.id)).failure == "it killed its worker"
    await run_with_worker_env(env, parked, replace(message, subject="job_absent"), "nobody is there")


async def test_only_the_key_of_a_job_stops_it(env: WorkerEnv) -> None:
    job, other = await started(env), await started(env)

    assert may_stop(env, job.id, stop_key(env, job.id))
    assert not may_stop(env, job.id, stop_key(env, other.id))
    assert not may_stop(env, job.id, stop_key(replace(env, name="other"), job.id))
    assert not may_stop(env, job.id, "")


@pytest.mark.parametrize("job_id", ["", "absent", "\0", "x" * 600])
async def test_a_job_that_does_not_exist_is_not_found(env: WorkerEnv, job_id: str) -> None:
    with pytest.raises(JobNotFound, match="There is no job"):
        await get_job(env, job_id)


async def test_a_slice_of_a_job_is_no_job(env: WorkerEnv) -> None:
    job = await started(env)
    with pytest.raises(JobNotFound):
        await get_job(env, slice_key(job.id, 0).removeprefix("job:"))


async def test_all_entries_of_a_job_expire_and_its_submissions_stay(env: WorkerEnv) -> None:
    job = await started(env)
    await run_job(env, job.id)

    assert await KVEntry.objects.filter(key__startswith=job_key(job.id), expires_at__isnull=True).acount() == 0
    await KVNamespace(KVEntry, env).delete(job_key(job.id))
    with pytest.raises(JobNotFound):
        await get_job(env, job.id)
    assert await SubmissionEntry.objects.acount() == MANY


async def test_a_page_is_a_part_of_those_that_stand_alike(env: WorkerEnv) -> None:
    job = await started(env)
    await step(env, job.id)
    found_job = await get_job(env, job.id)

    waiting = await progress_of(env, found_job, standing="waiting", start=10, size=20)
    assert (len(waiting.lines), waiting.start, waiting.following) == (20, 10, 30)
    assert waiting.lines[0].skill.skill.path == f"skills/s{SLICE + 10:04}"
    assert (await progress_of(env, found_job, standing="published")).lines == ()
