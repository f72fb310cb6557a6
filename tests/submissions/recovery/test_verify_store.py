"""The store is verified and mended: each fault is made for real, found, and mended by what mends it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from marketplace.catalog import figures
from marketplace.models import ALIAS_PREFIX, LaterScan, PastScan, SkillEntry, SkillVersion
from marketplace.models.derived import SkillCount
from marketplace.skills.counts import fold
from marketplace.skills.store import skill_namespace, write_capabilities
from submissions.messages import VERIFY
from submissions.models import QueueMessage, SubmissionEntry
from submissions.queue.database import get_queue
from submissions.recovery.problems import Kind
from submissions.recovery.verify_store import StoreReport, verify_store
from submissions.states import State
from submissions.store.queries import history, read_submission
from submissions.store.transitions import submission_key, submission_namespace
from tests.marketplace.factories import publish_example
from tests.submissions.factories import damage, make_submission, make_submissions, messages_of
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.threads import readers

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async


def found(report: StoreReport) -> list[tuple[str, str, bool]]:
    """Return what was found, about what, and whether it was mended."""
    return [(problem.kind, problem.subject, problem.repaired) for problem in report.problems]


def overwrite(model: type[SubmissionEntry | SkillEntry], key: str, column: str, value: str) -> None:
    """Write one column past the layer that keeps value and columns together."""
    with connections["default"].cursor() as cursor:
        cursor.execute(f'UPDATE {model._meta.db_table} SET "{column}" = %s WHERE "key" = %s', [value, key])  # noqa: S608 - our own names


async def test_a_store_in_order_has_no_problems(env: WorkerEnv) -> None:
    await in_thread(make_submissions)(env, 5, message=True)
    await in_thread(make_submissions)(env, 3, State.PUBLISHED)
    await in_thread(publish_example)(env)
    await KVNamespace(KVEntry, env).put("queue:paused", {"who": "operator"})
    report = await verify_store(env, repair=True)
    assert found(report) == []
    assert report.read == 5 + 3 + 1 + 1


async def test_a_message_without_a_submission_is_deleted(env: WorkerEnv) -> None:
    await in_thread(get_queue(env).send)(env.name, VERIFY, "sub_gone")
    assert found(await verify_store(env)) == [(Kind.ORPHAN_MESSAGE, "sub_gone", False)]
    assert await QueueMessage.objects.aexists(), "it was only looked for"
    assert found(await verify_store(env, repair=True)) == [(Kind.ORPHAN_MESSAGE, "sub_gone", True)]
    assert not await QueueMessage.objects.aexists()


@pytest.mark.parametrize("state", ["RECEIVED", "TIER1_SCANNING", "AUTO_APPROVED", "VENDOR_APPROVED"])
async def test_a_submission_without_a_message_gets_one(env: WorkerEnv, state: str) -> None:
    made = await in_thread(make_submission)(env, State(state))
    assert found(await verify_store(env, repair=True)) == [(Kind.NO_MESSAGE, made.id, True)]
    assert [message.subject for message in await in_thread(messages_of)(env, made.id)] == [made.id]
    [step] = await in_thread(history)(env, made.id)
    assert (step.actor, step.reason) == ("verify_store", "it had lost its message")
    assert found(await verify_store(env)) == []


async def test_a_submission_that_the_queue_gave_up_is_held(env: WorkerEnv) -> None:
    made = await in_thread(make_submission)(env, State.TIER1_SCANNING, message=True)
    [message] = (await get_queue(env).receive(env.name, 1, worker="test")).messages
    await get_queue(env).park(message, "it failed three times")
    assert found(await verify_store(env, repair=True)) == [(Kind.NO_MESSAGE, made.id, True)]
    after = await in_thread(read_submission)(env, made.id)
    assert (after.state, after.text("reason")) == (State.ON_HOLD, "the queue gave it up: it failed three times")
    assert after.text("verdict") == "inconclusive"


async def test_an_alias_that_leads_nowhere_is_deleted_and_one_that_leads_somewhere_kept(env: WorkerEnv) -> None:
    published = await in_thread(publish_example)(env)
    namespace = skill_namespace(env)
    await namespace.put(f"{ALIAS_PREFIX}former", published.slug)
    await namespace.put(f"{ALIAS_PREFIX}dangling", "no-such-skill")
    await namespace.put(f"{ALIAS_PREFIX}loop-a", "loop-b")
    await namespace.put(f"{ALIAS_PREFIX}loop-b", "loop-a")
    report = await verify_store(env, repair=True)
    assert found(report) == [(Kind.DANGLING_ALIAS, slug, True) for slug in ("dangling", "loop-a", "loop-b")]
    left = SkillEntry.objects.filter(key__startswith=ALIAS_PREFIX)
    assert [str(key) async for key in left.values_list("key", flat=True)] == [f"{ALIAS_PREFIX}former"]


async def test_columns_that_disagree_with_the_value_are_written_anew(env: WorkerEnv) -> None:
    made = await in_thread(make_submission)(env, State.ON_HOLD)
    published = await in_thread(publish_example)(env)
    await in_thread(overwrite)(SubmissionEntry, submission_key(made.id), "state", "PUBLISHED")
    await in_thread(overwrite)(SkillEntry, f"skill:{published.slug}", "visibility", "quarantined")

    report = await verify_store(env, repair=True)

    assert found(report) == [
        (Kind.PROJECTION, submission_key(made.id), True),
        (Kind.PROJECTION, f"skill:{published.slug}", True),
    ]
    assert report.problems[0].detail == "columns that disagree with the value: state"
    assert (await SubmissionEntry.objects.aget()).state == "ON_HOLD"
    assert (await SkillEntry.objects.aget()).visibility == "visible"
    assert found(await verify_store(env)) == []


async def test_a_skill_that_is_listed_by_less_than_it_can_do_is_renewed(env: WorkerEnv) -> None:
    await in_thread(publish_example)(env, capabilities=("shell_execution",))
    await in_thread(write_capabilities)(env, await SkillEntry.objects.aget(), ())
    assert found(await verify_store(env)) == [(Kind.CAPABILITIES, "capabilities of skills", False)]
    assert found(await verify_store(env, repair=True)) == [(Kind.CAPABILITIES, "capabilities of skills", True)]
    assert (await SkillEntry.objects.aget()).capabilities == ("executes",)
    assert found(await verify_store(env)) == []


async def test_a_value_whose_state_is_no_text_is_found(env: WorkerEnv) -> None:
    made = await in_thread(make_submission)(env, State.ON_HOLD)
    await in_thread(damage)(env, made.id, '{"state": []}')
    assert found(await verify_store(env)) == [(Kind.MALFORMED, submission_key(made.id), False)]


async def test_an_entry_that_is_written_anew_expires_when_it_would_have(env: WorkerEnv) -> None:
    made = await in_thread(make_submission)(env, State.ON_HOLD)
    expires_at = (await in_thread(database_now)(env.database)).replace(microsecond=0) + timedelta(days=1)
    rows = SubmissionEntry.objects.filter(key=submission_key(made.id))
    await rows.aupdate(expires_at=expires_at)
    await in_thread(overwrite)(SubmissionEntry, submission_key(made.id), "state", "PUBLISHED")

    await verify_store(env, repair=True)

    entry = await rows.aget()
    assert (entry.state, entry.expires_at) == ("ON_HOLD", expires_at)


@pytest.mark.parametrize(
    ("state", "afterwards"),
    [
        ("RECEIVED", State.RECEIVED),
        ("TIER1_SCANNING", State.RECEIVED),
        ("AUTO_APPROVED", State.ON_HOLD),
        ("REJECTED", State.REJECTED),
    ],
)
async def test_a_submission_whose_value_is_lost_is_written_anew_from_its_columns(
    env: WorkerEnv, state: str, afterwards: State
) -> None:
    made = await in_thread(make_submission)(env, State(state), age=timedelta(hours=1), message=True)
    await in_thread(damage)(env, made.id)

    assert found(await verify_store(env)) == [(Kind.MALFORMED, submission_key(made.id), False)]
    assert found(await verify_store(env, repair=True)) == [(Kind.MALFORMED, submission_key(made.id), True)]

    after = await in_thread(read_submission)(env, made.id)
    assert after.state is afterwards
    kept = ("id", "repoUrl", "skillPath", "skillName", "identity", "createdAt")
    assert {name: after.value[name] for name in kept} == {name: made.value[name] for name in kept}
    assert found(await verify_store(env)) == []


async def test_a_value_that_nothing_else_tells_of_is_left_and_said(env: WorkerEnv) -> None:
    published = await in_thread(publish_example)(env)
    await in_thread(overwrite)(SkillEntry, f"skill:{published.slug}", "value", "{cut")
    report = await verify_store(env, repair=True)
    assert found(report) == [(Kind.MALFORMED, f"skill:{published.slug}", False)]
    assert "not mended: nothing else says what it held" in report.problems[0].detail
    assert report.left == report.problems


async def test_a_scan_that_cannot_be_read_is_forgotten_and_a_pause_is_not(env: WorkerEnv) -> None:
    for key in ("scan:sub_1:engine", "queue:paused"):
        await KVNamespace(KVEntry, env).put(key, {})
    await KVEntry.objects.all().aupdate(metadata="{cut")
    report = await verify_store(env, repair=True)
    assert found(report) == [(Kind.MALFORMED, "queue:paused", False), (Kind.MALFORMED, "scan:sub_1:engine", True)]
    assert [str(entry.key) async for entry in KVEntry.objects.all()] == ["queue:paused"]


async def test_many_entries_are_read_in_windows_and_every_fault_is_found(env: WorkerEnv) -> None:
    ids = await in_thread(make_submissions)(env, 1_200, State.PUBLISHED)
    broken = sorted(ids)[::200]
    for submission_id in broken:
        await in_thread(damage)(env, submission_id)
    report = await verify_store(env)
    assert report.read == 1_200
    assert [problem.subject for problem in report.problems] == [submission_key(one) for one in broken]


async def test_another_environment_is_neither_read_nor_mended(env: WorkerEnv) -> None:
    other = WorkerEnv(name="another", database=env.database)
    await in_thread(make_submission)(other)
    report = await verify_store(env, repair=True)
    assert (found(report), report.read) == ([], 0)
    assert [kind for kind, _subject, _repaired in found(await verify_store(other))] == [Kind.NO_MESSAGE]


async def test_a_submission_that_moves_while_it_is_mended_is_left_to_who_moves_it(env: WorkerEnv) -> None:
    made = await in_thread(make_submission)(env)
    report = await verify_store(env)
    assert len(report.left) == 1
    await in_thread(get_queue(env).send)(env.name, VERIFY, made.id)
    namespace = submission_namespace(env)
    outcome = await namespace.get(submission_key(made.id))
    assert outcome.version == made.version
    assert found(await verify_store(env, repair=True)) == []


async def test_a_scan_of_a_submission_that_is_gone_is_named_and_forgotten(env: WorkerEnv) -> None:
    made = await in_thread(make_submission)(env, State.PUBLISHED)
    for submission_id in (made.id, "sub_gone"):
        await KVNamespace(KVEntry, env).put(f"scan:{submission_id}:structure", {"result": "kept"})
    assert found(await verify_store(env)) == [(Kind.ORPHAN_EVIDENCE, "scan:sub_gone:structure", False)]
    assert found(await verify_store(env, repair=True)) == [(Kind.ORPHAN_EVIDENCE, "scan:sub_gone:structure", True)]
    assert found(await verify_store(env)) == []


async def test_a_table_that_cannot_be_read_is_named_and_the_others_are_looked_at(env: WorkerEnv) -> None:
    await in_thread(get_queue(env).send)(env.name, VERIFY, "sub_gone")

    def without_a_column(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if KVEntry._meta.db_table in sql and "scan:" in str(params):
            raise DatabaseError("database disk image is malformed")
        return run(sql, params, many, context)

    def wrap(connection: BaseDatabaseWrapper, **_kwargs: Any) -> None:
        if without_a_column not in connection.execute_wrappers:
            connection.execute_wrappers.append(without_a_column)

    readers.close()
    connection_created.connect(wrap)
    try:
        report = await verify_store(env)
    finally:
        connection_created.disconnect(wrap)
        readers.close()
    assert found(report) == [
        (Kind.ORPHAN_MESSAGE, "sub_gone", False),
        (Kind.UNREADABLE, "evidence", False),
    ]
    assert "database disk image is malformed" in report.problems[-1].detail


async def test_counts_that_are_wrong_are_found_and_mended(env: WorkerEnv) -> None:
    await in_thread(publish_example)(env)
    await in_thread(fold)(env)
    await SkillCount.objects.filter(kind="total").aupdate(count=5)
    report = await verify_store(env)
    assert found(report) == [(Kind.COUNTS, "counts of lists", False)]
    assert "such as total of all, which is -4 off" in report.problems[0].detail
    assert found(await verify_store(env, repair=True)) == [(Kind.COUNTS, "counts of lists", True)]
    assert found(await verify_store(env)) == []
    assert (await in_thread(figures)(env)).skills == 1


async def test_a_later_scan_that_is_not_in_the_history_of_its_version_is_found_and_added(env: WorkerEnv) -> None:
    await in_thread(publish_example)(env)
    version = await SkillVersion.objects.select_related("skill").aget()
    # As an earlier release writes it.
    fields: dict[str, Any] = {"verdict": "held", "findings": [{"severity": "high"}], "engines": [{"name": "vskill"}]}
    later = await LaterScan.objects.acreate(namespace=env.name, version=version, scan_key="key", **fields)
    assert found(await verify_store(env)) == [(Kind.SCANS, "history of scans", False)]
    assert found(await verify_store(env, repair=True)) == [(Kind.SCANS, "history of scans", True)]
    assert found(await verify_store(env)) == []
    past = await PastScan.objects.aget()
    assert (past.version_id, past.outcome, past.findings, past.last_at) == (
        version.pk,
        "held",
        {"high": 1},
        later.scanned_at,
    )
