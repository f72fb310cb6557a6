"""Finding stuck submissions: every read in flight at once, every read settles alone, nothing is dropped uncounted.

The numbers are the test ids of the specification. TC-059, TC-073 and TC-074 stand for promises of the store and of
recovery that have no number elsewhere: fresh reads are concurrent, a report has one shape, and putting back happens
once.
"""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from submissions.models import QueueMessage, SubmissionTransition
from submissions.states import STUCK_STATES, STUCK_THRESHOLD, State
from submissions.store.queries import get_stuck_submissions, get_submissions_fresh, read_submission
from submissions.store.transitions import new_submission_id, submission_key, submission_namespace
from tests.submissions.factories import damage, make_submission, make_submissions, messages_of
from tests.submissions.refusals import inserts_refused
from tests.vskill.kv.database_layer import selects_meet
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat
from vskill.kv.models import KVEntry
from vskill.kv.probe import probe
from vskill.kv.threads import writers

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = timedelta(minutes=30)
MANY = 1_200


async def make_many(env: WorkerEnv, count: int, age: timedelta = LONG_AGO) -> list[str]:
    return await writers.run(make_submissions, env, count, age=age)


@pytest.mark.parametrize("using", ["scan", "index"])
async def test_tc_056_tc_070_all_keys_are_read_at_once(env: WorkerEnv, using: str) -> None:
    ids = await make_many(env, MANY)
    probe.reset()

    with selects_meet():
        report = await get_stuck_submissions(env, older_than=STUCK_THRESHOLD, using=using)

    assert {stuck.id for stuck in report.stuck} == set(ids)
    assert probe.max_reads_in_flight == MANY
    assert probe.reads_in_flight == 0
    assert 1 < probe.max_selects_in_flight <= 4


async def test_tc_056_the_reads_of_more_keys_than_a_window_stay_within_it(env: WorkerEnv) -> None:
    await make_many(env, 2_700, age=timedelta())
    probe.reset()

    report = await get_stuck_submissions(env, older_than=STUCK_THRESHOLD, using="scan")

    assert report.counts.read == 2_700
    assert probe.max_reads_in_flight == 2_000


@pytest.mark.parametrize("using", ["scan", "index"])
async def test_tc_056_tc_070_each_read_settles_alone(env: WorkerEnv, using: str) -> None:
    good, bad = await make_many(env, 8), await make_many(env, 3)
    for submission_id in bad:
        await writers.run(damage, env, submission_id)

    report = await get_stuck_submissions(env, older_than=STUCK_THRESHOLD, using=using)

    assert {stuck.id for stuck in report.stuck} == set(good)
    assert (report.counts.read, report.counts.malformed) == (8, 3)
    assert set(report.unreadable) == {submission_key(submission_id) for submission_id in bad}


async def test_tc_059_fresh_submissions_are_read_at_once(env: WorkerEnv) -> None:
    ids = await make_many(env, MANY, age=timedelta())
    probe.reset()

    found, counts = await get_submissions_fresh(env, ids)

    assert [submission.id for submission in found] == ids
    assert probe.max_reads_in_flight == counts.read == MANY


@pytest.mark.parametrize("state", ['{"state": "NO_SUCH_STATE"}', '{"state": []}', '{"state": {}}', "[]"])
async def test_tc_059_a_fresh_read_is_past_every_cache_and_counts_what_is_not_there(env: WorkerEnv, state: str) -> None:
    [moved, broken] = await make_many(env, 2)
    await get_submissions_fresh(env, [moved])
    await writers.run(
        submission_namespace(env).put_sync,
        submission_key(moved),
        {"id": moved, "state": State.ON_HOLD, "updatedAt": "2026-01-01T00:00:00Z"},
    )
    await writers.run(damage, env, broken, state)

    found, counts = await get_submissions_fresh(env, [broken, new_submission_id(), moved])

    assert [(submission.id, submission.state) for submission in found] == [(moved, State.ON_HOLD)]
    assert (counts.read, counts.malformed, counts.missing) == (1, 1, 1)


MALFORMED = {
    "not JSON": '{"state": ',
    "not an object": '["RECEIVED"]',
    "no state": '{"updatedAt": "2020-01-01T00:00:00Z"}',
    "a state that nobody knows": '{"state": "SLEEPING", "updatedAt": "2020-01-01T00:00:00Z"}',
    "no time": '{"state": "RECEIVED"}',
    "a time that is none": '{"state": "RECEIVED", "updatedAt": "yesterday"}',
    "nested too deeply": "[" * 100_000,
}


@pytest.mark.parametrize("value", MALFORMED.values(), ids=MALFORMED.keys())
async def test_tc_071_a_malformed_entry_is_skipped_and_counted(env: WorkerEnv, value: str) -> None:
    [good, bad] = await make_many(env, 2)
    await writers.run(damage, env, bad, value)

    report = await get_stuck_submissions(env, older_than=STUCK_THRESHOLD, using="scan")

    assert [stuck.id for stuck in report.stuck] == [good]
    assert (report.counts.read, report.counts.malformed) == (1, 1)
    assert report.unreadable == (submission_key(bad),)


async def test_tc_071_an_entry_that_goes_between_listing_and_reading_is_skipped_and_counted(env: WorkerEnv) -> None:
    [good, gone] = await make_many(env, 2)
    namespace = submission_namespace(env)
    keys = [key async for key in namespace.list_all("sub:")]
    await namespace.delete(submission_key(gone))

    found, counts = await get_submissions_fresh(env, [key.removeprefix("sub:") for key in keys])

    assert [submission.id for submission in found] == [good]
    assert (counts.read, counts.missing) == (1, 1)


@pytest.mark.parametrize("using", ["scan", "index"])
async def test_tc_072_exactly_the_threshold_is_stuck_and_younger_is_not(env: WorkerEnv, using: str) -> None:
    submission = await writers.run(make_submission, env)
    entry = await submission_namespace(env).get(submission_key(submission.id))
    [stuck] = (await get_stuck_submissions(env, older_than=timedelta(), using=using)).stuck
    assert entry.value["updatedAt"] == isoformat(stuck.updated_at)

    async def found_at(age: timedelta) -> list[str]:
        report = await get_stuck_submissions(env, older_than=STUCK_THRESHOLD, using=using, now=stuck.updated_at + age)
        return [one.id for one in report.stuck]

    assert await found_at(STUCK_THRESHOLD) == [submission.id]
    assert await found_at(STUCK_THRESHOLD - timedelta(milliseconds=1)) == []


@pytest.mark.parametrize("using", ["scan", "index"])
async def test_tc_072_only_the_states_that_move_by_themselves_can_be_stuck(env: WorkerEnv, using: str) -> None:
    made = {state: await writers.run(make_submission, env, state, age=LONG_AGO) for state in State}

    report = await get_stuck_submissions(env, older_than=STUCK_THRESHOLD, using=using)
    assert {stuck.id for stuck in report.stuck} == {made[state].id for state in STUCK_STATES}
    assert {"RECEIVED", "TIER1_SCANNING", "TIER2_SCANNING", "AUTO_APPROVED"} == STUCK_STATES

    one = frozenset({State.TIER1_SCANNING})
    report = await get_stuck_submissions(env, older_than=STUCK_THRESHOLD, states=one, using=using)
    assert [stuck.id for stuck in report.stuck] == [made[State.TIER1_SCANNING].id]


async def test_tc_072_the_longest_stuck_comes_first(env: WorkerEnv) -> None:
    ids = [(await writers.run(make_submission, env, age=timedelta(hours=hours))).id for hours in (1, 3, 2)]
    report = await get_stuck_submissions(env, older_than=STUCK_THRESHOLD)
    assert [stuck.id for stuck in report.stuck] == [ids[1], ids[2], ids[0]]


async def test_tc_073_a_stuck_submission_is_reported_in_one_shape(env: WorkerEnv) -> None:
    submission = await writers.run(make_submission, env, State.TIER1_SCANNING, age=LONG_AGO)
    [stuck] = (await get_stuck_submissions(env, older_than=STUCK_THRESHOLD)).stuck

    reported = json.loads(json.dumps(stuck.as_json()))

    stuck_for_ms = reported.pop("stuckForMs")
    assert stuck_for_ms == stuck.stuck_for // timedelta(milliseconds=1)
    assert stuck_for_ms >= LONG_AGO // timedelta(milliseconds=1)
    assert reported == {
        "id": submission.id,
        "state": "TIER1_SCANNING",
        "repoUrl": "https://git.example.org/someone/skills",
        "skillName": "hello-skill",
        "skillPath": "skills/hello",
        "updatedAt": submission.text("updatedAt"),
    }


def sweep(*arguments: str) -> dict[str, object]:
    out = StringIO()
    call_command("recover_stuck", "--json", *arguments, stdout=out)
    report: dict[str, object] = json.loads(out.getvalue())
    return report


def test_tc_074_recover_stuck_puts_back_once(env: WorkerEnv) -> None:
    submission = make_submission(env, State.TIER1_SCANNING, age=LONG_AGO)

    assert sweep()["recovered"] == 1
    assert sweep()["recovered"] == 0

    assert read_submission(env, submission.id).state is State.RECEIVED
    assert [message.subject for message in messages_of(env, submission.id)] == [submission.id]
    [step] = SubmissionTransition.objects.filter(submission_id=submission.id)
    assert (step.from_state, step.to_state, step.actor) == ("TIER1_SCANNING", "RECEIVED", "recovery")


def test_tc_074_the_message_and_the_state_are_one_transaction(env: WorkerEnv) -> None:
    submission = make_submission(env, State.TIER1_SCANNING, age=LONG_AGO)

    # The message is the last thing that is written, and the database refuses it.
    with inserts_refused(env.database, QueueMessage._meta.db_table), pytest.raises(SystemExit) as ended:
        sweep()

    assert ended.value.code == 2
    after = read_submission(env, submission.id)
    assert (after.state, after.version) == (State.TIER1_SCANNING, submission.version)
    assert not SubmissionTransition.objects.exists()
    assert not KVEntry.objects.filter(key__startswith="recovery:").exists()
    assert sweep()["recovered"] == 1


def test_tc_074_a_dry_run_changes_nothing(env: WorkerEnv) -> None:
    submission = make_submission(env, State.TIER1_SCANNING, age=LONG_AGO)

    report = sweep("--dry-run")

    assert (report["would_recover"], report["recovered"], report["dryRun"]) == (1, 0, True)
    after = read_submission(env, submission.id)
    assert (after.state, after.version) == (State.TIER1_SCANNING, submission.version)
    assert not QueueMessage.objects.exists()
    assert not SubmissionTransition.objects.exists()
