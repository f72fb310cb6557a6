"""Recovery: what stopped moving is put back once, or handed to a person; everything else is left alone."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db.backends.signals import connection_created
from django.db.models import F
from pytest_django import Settings

from submissions.messages import VERIFY, send
from submissions.models import QueueMessage, RecoverySweep, SubmissionEntry, SubmissionTransition
from submissions.queue.database import get_queue
from submissions.recovery.sweep import RecoveryReport, Result, put_back, recover_one, recover_stuck
from submissions.states import FINAL_STATES, State
from submissions.store.queries import get_stuck_submissions, history, read_submission
from submissions.store.records import Submission
from submissions.store.transitions import repeat, submission_key, submission_namespace, transition
from tests.submissions.factories import damage, make_submission, make_submissions, messages_of
from tests.submissions.front_door import drain, repository, skills, submitted_one
from tests.submissions.unreadable import unreadable_submissions
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.threads import readers, writers

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async
LONG_AGO = timedelta(minutes=30)


def results(report: object) -> dict[str, str]:
    """Return the result of each stuck submission by its id."""
    return {stuck.id: result for stuck, result, _reason in report.results}  # type: ignore[attr-defined]  # a report


@pytest.mark.parametrize("state", ["RECEIVED", "TIER1_SCANNING", "TIER2_SCANNING"])
async def test_what_lost_its_message_gets_a_new_one_and_begins_anew(env: WorkerEnv, state: str) -> None:
    stuck = await in_thread(make_submission)(env, State(state), age=LONG_AGO)

    report = await recover_stuck(env)

    assert results(report) == {stuck.id: Result.RECOVERED}
    after = await in_thread(read_submission)(env, stuck.id)
    assert after.state is State.RECEIVED
    [message] = await in_thread(messages_of)(env, stuck.id)
    assert (message.kind, message.parked_at) == (VERIFY, None)
    [step] = await in_thread(history)(env, stuck.id)
    assert (step.from_state, step.to_state, step.trigger) == (state, "RECEIVED", "recover_stuck")
    assert step.reason.startswith("put back by recovery 1 of 3, after 30.")


@pytest.mark.parametrize("using", ["index", "scan"])
async def test_a_message_that_waits_or_is_worked_on_is_no_sign_of_trouble(env: WorkerEnv, using: str) -> None:
    await in_thread(make_submission)(env, age=LONG_AGO, message=True)
    await in_thread(make_submission)(env, State.TIER1_SCANNING, age=LONG_AGO, message=True)
    await get_queue(env).receive(env.name, 1, worker="test")

    report = await recover_stuck(env, using=using)

    assert (results(report), report.as_json()["on_its_way"]) == ({}, 2)
    assert not await SubmissionTransition.objects.aexists()
    assert await QueueMessage.objects.acount() == 2


@pytest.mark.parametrize("using", ["index", "scan"])
async def test_a_message_that_came_after_the_query_is_seen_by_the_transaction(env: WorkerEnv, using: str) -> None:
    made = await in_thread(make_submission)(env, age=LONG_AGO)
    [seen] = (await get_stuck_submissions(env, older_than=LONG_AGO, using=using, idle=True)).stuck
    await in_thread(send)(env, made.id)
    assert await in_thread(recover_one)(env, seen) is Result.ON_ITS_WAY
    assert await QueueMessage.objects.acount() == 1


def statements_of_a_sweep(env: WorkerEnv) -> tuple[RecoveryReport, list[str]]:
    """Sweep, and return the report with the statements of all threads that say something of submissions or messages."""
    spied: list[str] = []

    def spy(execute: Any, sql: str, *rest: Any) -> Any:
        if "submissions_submission" in sql or "submissions_queuemessage" in sql:
            spied.append(sql)
        return execute(sql, *rest)

    def watched(one: Any, **_kwargs: Any) -> None:
        if spy not in one.execute_wrappers:
            one.execute_wrappers.append(spy)

    # The threads connect anew, and each connection is then watched.
    readers.close()
    writers.close()
    connection_created.connect(lambda connection, **_: watched(connection), weak=False, dispatch_uid="spy")
    try:
        return async_to_sync(recover_stuck)(env), spied
    finally:
        connection_created.disconnect(dispatch_uid="spy")
        readers.close()
        writers.close()


def test_a_sweep_costs_what_is_stuck_and_not_what_waits(env: WorkerEnv) -> None:
    stuck = make_submissions(env, 3, age=LONG_AGO)
    report, alone = statements_of_a_sweep(env)
    assert report.count(Result.RECOVERED) == 3
    QueueMessage.objects.all().delete()
    KVEntry.objects.all().delete()
    make_submissions(env, 2000, age=LONG_AGO, message=True)
    SubmissionEntry.objects.filter(key__in=map(submission_key, stuck)).delete()
    again = make_submissions(env, 3, age=LONG_AGO)

    report, crowded = statements_of_a_sweep(env)

    assert set(results(report)) == set(again)
    assert report.as_json()["on_its_way"] == 2000
    assert report.counts.read == 3
    assert len(alone) > 3
    assert len(crowded) == len(alone)


@pytest.mark.parametrize("using", ["index", "scan"])
def test_a_damaged_entry_is_counted_though_its_message_waits(env: WorkerEnv, using: str) -> None:
    _whole, cut, gone = make_submissions(env, 3, age=LONG_AGO, message=True)
    damage(env, cut)
    # It may hold up no other, nor be taken for one that is on its way.
    [stuck] = make_submissions(env, 1, age=LONG_AGO)

    with unreadable_submissions([submission_key(gone)]):
        report = async_to_sync(recover_stuck)(env, using=using)

    assert results(report) == {stuck: Result.RECOVERED}
    assert report.as_json()["on_its_way"] == 1
    assert report.counts.failed == 2
    assert set(report.unreadable) == {submission_key(cut), submission_key(gone)}


async def test_what_moved_since_it_was_seen_is_left_alone(env: WorkerEnv) -> None:
    made = await in_thread(make_submission)(env, age=LONG_AGO)
    [seen] = (await get_stuck_submissions(env, older_than=LONG_AGO)).stuck
    await in_thread(repeat)(env, made, reason="a worker woke up late", actor="test", trigger="test")
    assert await in_thread(recover_one)(env, seen) is Result.MOVED
    assert not await QueueMessage.objects.aexists()


async def test_after_three_recoveries_a_person_has_to_look(env: WorkerEnv) -> None:
    made = await in_thread(make_submission)(env, State.TIER1_SCANNING, age=LONG_AGO)
    for attempt in (1, 2, 3):
        report = await recover_stuck(env, older_than=timedelta())
        assert results(report) == {made.id: Result.RECOVERED}, attempt
        await QueueMessage.objects.all().adelete()

    assert results(await recover_stuck(env, older_than=timedelta(), dry_run=True)) == {made.id: Result.WOULD_HOLD}
    assert results(await recover_stuck(env, older_than=timedelta())) == {made.id: Result.HELD}

    after = await in_thread(read_submission)(env, made.id)
    assert after.state is State.ON_HOLD
    assert after.text("reason").startswith("recovery_exhausted: it stopped moving 3 times")
    assert after.text("verdict") == "inconclusive"
    assert not await QueueMessage.objects.aexists()


async def test_the_count_of_recoveries_is_forgotten_after_a_day(env: WorkerEnv) -> None:
    made = await in_thread(make_submission)(env, age=LONG_AGO)
    await recover_stuck(env)
    attempts = KVEntry.objects.filter(key=f"recovery:{made.id}")
    assert [entry.value async for entry in attempts] == ['{"attempts":1}']
    kept = await attempts.aget()
    assert kept.expires_at is not None
    assert kept.expires_at - kept.updated_at == timedelta(hours=24)


async def test_a_count_that_cannot_be_read_is_taken_as_used_up(env: WorkerEnv) -> None:
    made = await in_thread(make_submission)(env, age=LONG_AGO)
    await KVNamespace(KVEntry, env).put(f"recovery:{made.id}", "many")
    assert results(await recover_stuck(env)) == {made.id: Result.HELD}


async def given_up_by_the_queue(env: WorkerEnv, state: State) -> Submission:
    """Make a submission whose message is parked, while nobody was told."""
    made = await in_thread(make_submission)(env, state, age=LONG_AGO, message=True)
    [message] = (await get_queue(env).receive(env.name, 1, worker="test")).messages
    await get_queue(env).park(message, "its worker did not come back 3 times")
    return made


@pytest.mark.parametrize("state", sorted(set(State) - FINAL_STATES))
async def test_what_the_queue_gave_up_is_held_with_the_queues_reason_though_nobody_was_told(
    env: WorkerEnv, state: State
) -> None:
    made = await given_up_by_the_queue(env, state)

    assert results(await recover_stuck(env)) == {made.id: Result.HELD}

    after = await in_thread(read_submission)(env, made.id)
    assert after.state is State.ON_HOLD
    assert after.text("reason") == "the queue gave it up: its worker did not come back 3 times"
    # What the checks had decided stands; what they had not is not taken for decided.
    decided = state in (State.AUTO_APPROVED, State.VENDOR_APPROVED)
    assert after.text("verdict") == ("" if decided else "inconclusive")
    [parked] = await in_thread(messages_of)(env, made.id)
    assert parked.parked_at is not None
    assert results(await recover_stuck(env, older_than=timedelta())) == {}


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
async def test_what_has_ended_before_the_queue_gave_up_its_message_is_left_as_it_is(
    env: WorkerEnv, state: State
) -> None:
    made = await given_up_by_the_queue(env, state)

    assert results(await recover_stuck(env)) == {}
    assert (await in_thread(read_submission)(env, made.id)).version == made.version


async def test_an_approved_submission_goes_on_to_publication_with_the_scan_it_has(
    env: WorkerEnv, tmp_path: Path
) -> None:
    made = await submitted_one(env, repository(tmp_path, skills("hello-skill")))
    await drain(env)
    published = await in_thread(read_submission)(env, made.id)
    assert published.state is State.PUBLISHED
    scan = await KVEntry.objects.aget(key=f"scan:{made.id}:skilltotal")
    # Its worker died between approval and publication, and the message is lost too.
    back = {**published.value, "state": State.AUTO_APPROVED, "updatedAt": "2026-01-01T00:00:00Z"}
    await submission_namespace(env).put(submission_key(made.id), back)

    assert results(await recover_stuck(env)) == {made.id: Result.RECOVERED}
    recovered = await in_thread(read_submission)(env, made.id)
    assert recovered.state is State.AUTO_APPROVED
    await drain(env)

    assert (await in_thread(read_submission)(env, made.id)).state is State.PUBLISHED
    assert (await KVEntry.objects.aget(pk=scan.pk)).version == scan.version, "it was scanned again"


async def test_a_limit_moves_that_many_and_says_how_many_are_left(env: WorkerEnv) -> None:
    made = await in_thread(make_submissions)(env, 5, age=LONG_AGO)
    await in_thread(make_submission)(env, age=timedelta(hours=2), message=True)

    report = await recover_stuck(env, limit=2)

    assert (report.count(Result.RECOVERED), report.left) == (2, 3)
    assert report.count(Result.ON_ITS_WAY) == 1
    assert set(results(report)) < set(made)
    assert (await recover_stuck(env)).count(Result.RECOVERED) == 3


async def test_progress_is_told_for_each(env: WorkerEnv) -> None:
    await in_thread(make_submissions)(env, 3, age=LONG_AGO)
    told: list[tuple[int, int]] = []
    await recover_stuck(env, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


async def test_another_environment_is_not_touched(env: WorkerEnv) -> None:
    other = WorkerEnv(name="another", database=env.database)
    theirs = await in_thread(make_submission)(other, age=LONG_AGO)
    assert results(await recover_stuck(env)) == {}
    assert results(await recover_stuck(other)) == {theirs.id: Result.RECOVERED}


async def test_two_sweeps_at_once_move_each_submission_once(env: WorkerEnv) -> None:
    made = await in_thread(make_submissions)(env, 20, State.TIER1_SCANNING, age=LONG_AGO)
    [*seen] = (await get_stuck_submissions(env, older_than=LONG_AGO)).stuck
    # Past the lock, which would let only one of them begin: each submission is guarded by itself.
    ends = await asyncio.gather(*(writers.run(recover_one, env, one) for one in seen * 4), return_exceptions=True)
    assert sum(end is Result.RECOVERED for end in ends) == 20
    assert await SubmissionTransition.objects.acount() == await QueueMessage.objects.acount() == len(made)


class TestLog:
    async def test_a_sweep_is_written_down_with_what_it_did(self, env: WorkerEnv) -> None:
        await in_thread(make_submissions)(env, 3, age=LONG_AGO)
        broken = await in_thread(make_submission)(env, age=LONG_AGO)
        await in_thread(damage)(env, broken.id)
        await recover_stuck(env, limit=2, using="scan")
        sweep = await RecoverySweep.objects.aget()
        assert sweep.ended_at is not None
        assert (sweep.environment, sweep.read, sweep.failed_reads) == (env.name, 3, 1)
        assert (sweep.recovered, sweep.held, sweep.failed, sweep.left) == (2, 0, 0, 1)
        told = json.loads(sweep.details)
        assert told["unreadableKeys"] == [submission_key(broken.id)]
        assert [one["result"] for one in told["submissions"]] == ["recovered", "recovered"]

    async def test_a_dry_run_is_not_and_old_ones_are_forgotten(self, env: WorkerEnv) -> None:
        await recover_stuck(env, dry_run=True)
        assert not await RecoverySweep.objects.aexists()
        await recover_stuck(env)
        await RecoverySweep.objects.aupdate(started_at=F("started_at") - timedelta(days=8))
        await recover_stuck(env)
        assert await RecoverySweep.objects.acount() == 1


async def test_the_attempts_allowed_are_a_setting(env: WorkerEnv, settings: Settings) -> None:
    settings.RECOVERY_MAX_ATTEMPTS = 0
    made = await in_thread(make_submission)(env, age=LONG_AGO)
    assert results(await recover_stuck(env)) == {made.id: Result.HELD}


def test_an_approval_that_is_put_back_stays_one(env: WorkerEnv) -> None:
    made = make_submission(env, State.AUTO_APPROVED)
    put_back(env, made, reason="it had lost its message", actor="test", trigger="test")
    again = read_submission(env, made.id)
    assert again.state is State.AUTO_APPROVED
    held = transition(env, again, State.ON_HOLD, reason="", actor="test", trigger="test")
    assert held.state is State.ON_HOLD


@pytest.mark.parametrize("state", [State.VENDOR_APPROVED, State.RESCAN_REQUIRED])
def test_a_step_of_the_pipeline_that_lost_its_message_is_put_back(env: WorkerEnv, state: State) -> None:
    waiting = make_submission(env, state, age=timedelta(hours=1))
    report = async_to_sync(recover_stuck)(env)

    assert report.count(Result.RECOVERED) == 1
    assert len(messages_of(env, waiting.id)) == 1
    assert read_submission(env, waiting.id).state is state
