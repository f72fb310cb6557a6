"""Damaged entries, late workers and wrong clocks: reports are exact; nothing is done early, late or twice."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async

from submissions.models import QueueMessage
from submissions.queue.base import Message
from submissions.queue.database import get_queue
from submissions.states import State
from submissions.store.transitions import submission_key
from tests.reliability.conftest import Record
from tests.reliability.installation import Installation
from tests.submissions.commands.run import run
from tests.submissions.factories import damage, make_submissions
from tests.submissions.queue.messages import KIND, let_leases_end
from tests.submissions.unreadable import unreadable_submissions
from vskill.environments import WorkerEnv

in_thread = sync_to_async
ENTRIES, MALFORMED, UNREADABLE, STUCK = 20_000, 200, 5, 30
ROUNDS = 2_000


@pytest.mark.django_db(transaction=True)
def test_a_sweep_over_damaged_entries_ends_and_counts_them_exactly(env: WorkerEnv, record: Record) -> None:
    ids = make_submissions(env, ENTRIES - STUCK, State.PUBLISHED, age=timedelta(hours=1))
    stuck = make_submissions(env, STUCK, age=timedelta(hours=1))
    spread = sorted(ids)
    malformed = spread[:: len(spread) // MALFORMED][:MALFORMED]
    for submission_id in malformed:
        damage(env, submission_id)
    damaged = [one for one in spread if one not in set(malformed)][:: ENTRIES // UNREADABLE][:UNREADABLE]
    assert (len(malformed), len(damaged)) == (MALFORMED, UNREADABLE)

    with unreadable_submissions([submission_key(one) for one in damaged]):
        ended = run("recover_stuck", "--using", "scan", "--json")

    assert ended.code == 3
    told = ended.document
    assert (told["malformed"], told["unreadable"], told["missing"]) == (MALFORMED, UNREADABLE, 0)
    assert told["read"] == ENTRIES - MALFORMED - UNREADABLE
    assert (told["recovered"], told["failed"]) == (STUCK, 0)
    assert set(told["unreadableKeys"]) == {submission_key(one) for one in (*malformed, *damaged)}
    assert QueueMessage.objects.count() == len(stuck)
    record(
        "1 % malformed among 20,000 entries; 5 unreadable",
        f"the sweep ended: {MALFORMED} malformed, {UNREADABLE} unreadable, {STUCK} of {STUCK} put back, exit code 3",
    )


@pytest.mark.django_db(transaction=True)
async def test_a_late_completion_with_an_old_token_changes_nothing_in_two_thousand_rounds(
    env: WorkerEnv, record: Record
) -> None:
    queue = get_queue(env)
    messages = [QueueMessage(environment=env.name, kind=KIND, subject=f"subject {number}") for number in range(ROUNDS)]
    await QueueMessage.objects.abulk_create(messages)
    late: list[Message] = []
    while batch := await queue.receive(env.name, 500, worker="late"):
        late += batch.messages
    await in_thread(let_leases_end)(env)
    while await queue.receive(env.name, 500, worker="current"):
        pass
    before = [row async for row in QueueMessage.objects.order_by("id").values()]

    changed = 0
    for number, message in enumerate(late):
        match number % 4:
            case 0:
                changed += await queue.acknowledge(message)
            case 1:
                changed += await queue.release(message)
            case 2:
                changed += await queue.retry(message, "late", timedelta())
            case _:
                changed += await queue.park(message, "late")
    changed += len(await queue.extend(late[:500]))

    assert len(late) == ROUNDS
    assert changed == 0
    assert [row async for row in QueueMessage.objects.order_by("id").values()] == before
    record("late completion with an old token, 2,000 rounds", "0 changes")


@pytest.mark.parametrize("minutes", [-10.0, 10.0], ids=["slow", "fast"])
def test_a_worker_whose_clock_is_wrong_rescues_nothing_early_or_late(
    one: Installation, record: Record, minutes: float
) -> None:
    threshold = ["recover_stuck", "--older-than", "300"]
    one.run("stuck", name="default", count=3, minutes=4.0)
    one.run("with_a_wrong_clock", minutes=minutes, words=threshold)
    assert one.number("SELECT count(*) FROM submissions_queuemessage") == 0, "rescued early"
    one.run("stuck", name="default", count=3, minutes=6.0)
    one.run("with_a_wrong_clock", minutes=minutes, words=threshold)
    assert one.number("SELECT count(*) FROM submissions_queuemessage") == 3, "not rescued in time"
    moved = one.rows("SELECT state_at FROM submissions_submissionentry WHERE state = 'RECEIVED'")
    [(now,)] = one.rows(
        "SELECT strftime('%Y-%m-%d %H:%M:%S', 'now', '-1 minute')"
        if one.is_sqlite
        else "SELECT now() - interval '1 minute'"
    )
    assert all(now < at for (at,) in moved), "written with the worker's own time"
    record(f"clock of a worker 10 minutes {'fast' if minutes > 0 else 'slow'}", "nothing rescued early or late")


FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


@pytest.mark.skipif(FAKETIME is None, reason="libfaketime is not installed (Debian: libfaketime)")
@pytest.mark.parametrize("minutes", [-10, 10], ids=["slow", "fast"])
def test_a_process_whose_system_clock_is_wrong_sees_leases_by_the_clock_of_its_database(
    one: Installation, record: Record, minutes: int
) -> None:
    """SQLite has no clock but that of the process that asks, as docs/reliability.md says; PostgreSQL has its own."""
    one.run("send", name="default", subjects=["leased"])
    one.run("claim_and_leave", name="default")
    preloaded = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": f"{minutes:+d}m"}
    seen = json.loads(one.instance.manage("queue_status", "--json", **preloaded))
    ends_early = one.is_sqlite and minutes > 0
    assert (seen["leased"], seen["waiting"] + seen["delayed"]) == ((0, 1) if ends_early else (1, 0))
    outcome = "a live lease counts as ended" if ends_early else "the lease counts"
    record(f"system clock of a process 10 minutes {'fast' if minutes > 0 else 'slow'}", outcome)
