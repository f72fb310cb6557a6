"""Writing submissions: one step is one compare-and-set and one history row, or nothing at all."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import TypedDict

import pytest
from asgiref.sync import sync_to_async
from django.db import IntegrityError

from submissions.models import SubmissionEntry, SubmissionTransition
from submissions.states import IllegalTransition, State
from submissions.store import state_counts
from submissions.store.queries import get_submission, get_submission_index, history, read_submission
from submissions.store.records import SubmissionNotFound
from submissions.store.state_counts import count_states
from submissions.store.transitions import create_submission, new_submission_id, repeat, touch, transition
from tests.submissions.factories import damage, make_submission, make_submissions
from tests.submissions.refusals import REFUSAL, inserts_refused
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict
from vskill.kv.threads import writers

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async
FIELDS = {"repoUrl": "https://git.example.org/someone/skills", "skillPath": "a", "skillName": "a", "identity": "one"}


class By(TypedDict):
    """Who moves it, and why it is looked at."""

    actor: str
    trigger: str


BY: By = {"actor": "tester", "trigger": "test"}


def test_an_id_is_a_prefix_and_a_random_uuid() -> None:
    first, second = new_submission_id(), new_submission_id()
    assert first != second
    assert first.startswith("sub_")
    assert len(bytes.fromhex(first.removeprefix("sub_"))) == 16


def test_a_new_submission_is_received_and_has_its_first_history_row(env: WorkerEnv) -> None:
    made = create_submission(env, FIELDS, **BY)
    assert (made.state, made.version) == (State.RECEIVED, 1)
    assert read_submission(env, made.id) == made
    [step] = history(env, made.id)
    assert (step.from_state, step.to_state, step.sequence, step.actor) == ("", "RECEIVED", 1, "tester")


def test_one_skill_has_one_live_submission(env: WorkerEnv) -> None:
    first = create_submission(env, FIELDS, **BY)
    with pytest.raises(IntegrityError):
        create_submission(env, FIELDS, **BY)
    assert SubmissionTransition.objects.count() == 1
    moved = transition(env, first, State.BLOCKED, reason="", **BY)
    assert moved.state is State.BLOCKED
    assert create_submission(env, FIELDS, **BY).id != first.id


def test_a_step_writes_state_reason_changes_and_a_history_row(env: WorkerEnv) -> None:
    made = create_submission(env, FIELDS, **BY)
    moved = transition(env, made, State.TIER1_SCANNING, reason="it is its turn", changes={"commitSha": "ab"}, **BY)
    assert read_submission(env, made.id) == moved
    assert (moved.text("reason"), moved.text("commitSha")) == ("it is its turn", "ab")
    assert moved.value["createdAt"] == made.value["createdAt"] <= moved.value["updatedAt"]
    entry = SubmissionEntry.objects.get(key=f"sub:{made.id}")
    assert (entry.state, entry.version) == ("TIER1_SCANNING", 2)
    assert [(step.from_state, step.to_state, step.sequence) for step in history(env, made.id)] == [
        ("", "RECEIVED", 1),
        ("RECEIVED", "TIER1_SCANNING", 2),
    ]


def test_a_step_that_the_table_does_not_have_changes_nothing(env: WorkerEnv) -> None:
    made = create_submission(env, FIELDS, **BY)
    with pytest.raises(IllegalTransition):
        transition(env, made, State.PUBLISHED, reason="", **BY)
    assert read_submission(env, made.id) == made


async def test_of_many_who_move_it_at_once_one_does(env: WorkerEnv) -> None:
    made = await in_thread(create_submission)(env, FIELDS, **BY)
    moves = [
        writers.run(transition, env, made, State.TIER1_SCANNING, reason=f"mover {number}", **BY) for number in range(12)
    ]
    ends = Counter(type(end).__name__ for end in await asyncio.gather(*moves, return_exceptions=True))
    assert ends == {"Submission": 1, "VersionConflict": 11}
    assert await SubmissionTransition.objects.filter(submission_id=made.id).acount() == 2


def test_a_step_whose_history_cannot_be_written_is_not_taken(env: WorkerEnv) -> None:
    made = create_submission(env, FIELDS, **BY)
    with (
        inserts_refused(env.database, SubmissionTransition._meta.db_table),
        pytest.raises(Exception, match=REFUSAL),
    ):
        transition(env, made, State.TIER1_SCANNING, reason="", **BY)
    assert read_submission(env, made.id) == made


def test_a_change_without_a_step_is_guarded_and_leaves_no_row(env: WorkerEnv) -> None:
    made = create_submission(env, FIELDS, **BY)
    touched = touch(env, made, {"commitSha": "ab"})
    assert (touched.state, touched.version) == (State.RECEIVED, 2)
    with pytest.raises(VersionConflict):
        touch(env, made, {"commitSha": "cd"})
    assert len(history(env, made.id)) == 1


def test_a_repeated_state_leaves_a_row_that_says_why(env: WorkerEnv) -> None:
    made = create_submission(env, FIELDS, **BY)
    again = repeat(env, made, reason="its worker was gone", **BY)
    assert (again.state, again.version) == (State.RECEIVED, 2)
    last = history(env, made.id)[-1]
    assert (last.from_state, last.to_state, last.reason) == ("RECEIVED", "RECEIVED", "its worker was gone")


async def test_what_is_not_there_or_no_submission_is_not_found(env: WorkerEnv) -> None:
    with pytest.raises(SubmissionNotFound, match="There is no submission 'sub_none' here"):
        await get_submission(env, "sub_none")
    broken = await in_thread(make_submission)(env)
    await in_thread(damage)(env, broken.id, '{"state": "SLEEPING"}')
    with pytest.raises(SubmissionNotFound, match="is not a submission"):
        await get_submission(env, broken.id)


def test_the_index_is_a_query_over_columns(env: WorkerEnv) -> None:
    [older] = make_submissions(env, 1, age=timedelta(hours=1))
    [newer] = make_submissions(env, 1, State.ON_HOLD, repoUrl="https://git.example.org/other/skills")
    assert [entry.submission_id for entry in get_submission_index(env)] == [newer, older]
    assert [entry.submission_id for entry in get_submission_index(env, states=[State.RECEIVED])] == [older]
    found = get_submission_index(env, repo_url="https://git.example.org/other/skills")
    assert [entry.submission_id for entry in found] == [newer]
    assert len(get_submission_index(env, limit=1)) == 1


def test_states_are_counted_now_to_a_bound_and_those_of_nobody_are_0(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_submissions(env, 3)
    make_submissions(env, 2, State.PUBLISHED)
    counted = count_states(env)
    assert set(counted) == set(State)
    assert (counted[State.RECEIVED], counted[State.PUBLISHED], counted[State.ON_HOLD]) == (
        (3, False),
        (2, False),
        (0, False),
    )
    monkeypatch.setattr(state_counts, "MOST_COUNTED", 2)
    counted = count_states(env)
    assert (counted[State.RECEIVED], counted[State.PUBLISHED]) == ((2, True), (2, False))
