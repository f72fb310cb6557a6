"""Submissions that move at the same time share a transaction, and each is told of its own step alone."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from asgiref.sync import sync_to_async

from submissions.models import SubmissionEntry, SubmissionTransition
from submissions.states import IllegalTransition, State
from submissions.store.batched_transitions import move
from submissions.store.queries import get_submission, history, read_submission
from submissions.store.records import Submission
from submissions.store.transitions import Step
from tests.submissions.factories import make_submissions
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async


async def made(env: WorkerEnv, count: int, **fields: object) -> list[Submission]:
    """Write submissions in RECEIVED and return them as they are read."""
    ids = await in_thread(make_submissions)(env, count, **fields)  # type: ignore[arg-type]  # passed on as they are
    return [await get_submission(env, submission_id) for submission_id in ids]


def scanning(submission: Submission, **changes: object) -> Step:
    """Return the step into the first scan."""
    return Step(submission, State.TIER1_SCANNING, "its turn", "tester", "test", changes or None)


async def test_a_move_writes_what_a_transition_writes(env: WorkerEnv) -> None:
    [submission] = await made(env, 1)
    moved = await move(env, scanning(submission, commitSha="ab"))
    assert moved == await get_submission(env, submission.id)
    assert (moved.state, moved.version, moved.text("commitSha")) == (State.TIER1_SCANNING, 2, "ab")
    assert moved.value["updatedAt"] > submission.value["updatedAt"]
    entry = await SubmissionEntry.objects.aget(key=f"sub:{submission.id}")
    assert {**SubmissionEntry.project(moved.value)} == {
        column: getattr(entry, column) for column in SubmissionEntry.projected_columns
    }
    [step] = await in_thread(history)(env, submission.id)
    assert (step.from_state, step.to_state, step.sequence) == ("RECEIVED", "TIER1_SCANNING", 2)
    assert (step.reason, step.actor, step.trigger) == ("its turn", "tester", "test")


async def test_many_that_move_at_once_share_a_transaction(env: WorkerEnv) -> None:
    submissions = await made(env, 40)

    moved = await asyncio.gather(*(move(env, scanning(one)) for one in submissions))

    assert {one.id for one in moved} == {one.id for one in submissions}
    assert await SubmissionEntry.objects.filter(state="TIER1_SCANNING").acount() == 40
    assert await SubmissionTransition.objects.acount() == 40
    # The database stamps the rows of one statement with one time, and those of forty with forty.
    times = SubmissionEntry.objects.values_list("updated_at", flat=True).distinct()
    assert len([moment async for moment in times]) == 1


async def test_one_that_was_moved_by_somebody_else_is_told_and_the_others_move(env: WorkerEnv) -> None:
    first, late, last = await made(env, 3)
    await move(env, scanning(late))
    ends = await asyncio.gather(*(move(env, scanning(one)) for one in (first, late, last)), return_exceptions=True)
    assert [type(end) for end in ends] == [Submission, VersionConflict, Submission]
    assert await SubmissionTransition.objects.filter(submission_id=late.id).acount() == 1


async def test_two_who_move_the_same_one_at_once_move_it_once(env: WorkerEnv) -> None:
    [submission] = await made(env, 1)
    ends = await asyncio.gather(*(move(env, scanning(submission)) for _ in range(5)), return_exceptions=True)
    assert Counter(type(end) for end in ends) == {Submission: 1, VersionConflict: 4}
    assert await SubmissionTransition.objects.acount() == 1


async def test_one_that_the_database_refuses_does_not_keep_the_others(env: WorkerEnv) -> None:
    [good_one] = await made(env, 1)
    [refused] = await made(env, 1)
    [good_two] = await made(env, 1)
    # Its identity becomes that of another live submission, which a constraint of the table refuses.
    steps = [scanning(good_one), scanning(refused, identity=good_one.text("identity")), scanning(good_two)]
    ends = await asyncio.gather(*(move(env, step) for step in steps), return_exceptions=True)
    assert [type(end).__name__ for end in ends] == ["Submission", "IntegrityError", "Submission"]
    assert (await in_thread(read_submission)(env, refused.id)) == refused
    assert await SubmissionTransition.objects.acount() == 2


async def test_a_reason_that_quotes_what_no_database_holds_is_written_without_it(env: WorkerEnv) -> None:
    one, other = await made(env, 2)
    quoting = Step(one, State.TIER1_SCANNING, "no file a\udcff\0b", "tester", "test")

    moved, _ = await asyncio.gather(move(env, quoting), move(env, scanning(other)))

    [step] = await in_thread(history)(env, one.id)
    assert moved.text("reason") == step.reason == "no file a?\N{REPLACEMENT CHARACTER}b"
    assert await get_submission(env, one.id) == moved


async def test_a_step_that_the_table_does_not_have_is_refused_before_anything_is_asked(env: WorkerEnv) -> None:
    [submission] = await made(env, 1)
    with pytest.raises(IllegalTransition):
        await move(env, Step(submission, State.PUBLISHED, "", "tester", "test"))
    assert await get_submission(env, submission.id) == submission


async def test_a_value_without_times_is_written_too(env: WorkerEnv) -> None:
    # All of its times are empty, which is where PostgreSQL would not know what type an empty column has.
    [submission] = await made(env, 1)
    moved = await move(env, scanning(submission, createdAt=None))
    assert moved.value["createdAt"] is None
    assert (await SubmissionEntry.objects.aget()).submitted_at is None
