"""External scans that are asked for: once however many ask, within the limit of an hour, and not for ever."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connections

from marketplace.catalog import find_skill_sync, find_version_sync
from marketplace.external_scans import ExternalScan, ScanState, external_scan_key, external_scans_sync
from marketplace.models import SkillVersion
from submissions.external_scans.dispatch import DispatchReport, run_external_scans
from submissions.external_scans.errors import NothingToScan, TooManyScans, UnknownScanner
from submissions.external_scans.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER, is_signed
from submissions.external_scans.store import (
    BUDGET_KEY,
    PENDING_FOR,
    PER_HOUR,
    RUNNING_FOR,
    is_overdue,
    read_scan,
    request_scan,
    write_scan,
)
from tests.marketplace.factories import publish_example
from tests.submissions.external_scans.scanner import SECRET, scanner, with_scanners
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat, parse_isoformat
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.worker_context import WorkerEnvMissing, run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)

NOWHERE = "http://127.0.0.1:9/scan"


def run(env: WorkerEnv, **how: Any) -> DispatchReport:
    """Run the dispatch once and return its report."""

    async def main() -> DispatchReport:
        return await run_with_worker_env(env, run_external_scans, **how)

    return async_to_sync(main)()


def published(env: WorkerEnv, name: str = "hello-skill") -> SkillVersion:
    """Publish a skill and return its version."""
    publish_example(env, name=name)
    skill = find_skill_sync(env, name)
    assert skill is not None
    version = find_version_sync(env, skill)
    assert version is not None
    return version


def backdate(env: WorkerEnv, scan: ExternalScan, **fields: str) -> None:
    """Write earlier times into a scan."""
    kept = read_scan(env, scan.content_hash, scan.provider)
    assert kept is not None
    write_scan(env, kept, **fields)


def ago(env: WorkerEnv, gone: timedelta) -> str:
    """Return the time that was ``gone`` ago, by the clock of the database."""
    return isoformat(database_now(env.database) - gone)


def test_one_runs_however_many_ask(env: WorkerEnv) -> None:
    env = with_scanners(env, one=NOWHERE)
    version = published(env)
    first, new = request_scan(env, version, "one", by="test")
    again, renewed = request_scan(env, version, "one", by="another")
    assert (new, renewed, again.id) == (True, False, first.id)
    backdate(env, first, state=ScanState.RUNNING, started_at=ago(env, timedelta(minutes=30)))
    assert request_scan(env, version, "one", by="test")[0].id == first.id
    backdate(env, first, state=ScanState.COMPLETED)
    assert request_scan(env, version, "one", by="test")[1]


def test_of_many_that_ask_at_once_one_is_new(env: WorkerEnv) -> None:
    env = with_scanners(env, one=NOWHERE)
    version = published(env)
    answers: list[tuple[str, bool]] = []

    def ask() -> None:
        try:
            scan, new = request_scan(env, version, "one", by="test")
            answers.append((scan.id, new))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(new for _id, new in answers) == 1
    assert len({scan_id for scan_id, _new in answers}) == 1
    assert len(KVNamespace(KVEntry, env).get_sync(BUDGET_KEY).require()) == 1


def test_a_scanner_that_is_not_configured_is_not_asked(env: WorkerEnv) -> None:
    with pytest.raises(UnknownScanner, match="no external scanner 'other'"):
        request_scan(with_scanners(env, one=NOWHERE), published(env), "other", by="test")


def test_more_than_a_hundred_an_hour_are_refused_until_the_hour_is_over(env: WorkerEnv) -> None:
    env = with_scanners(env, one=NOWHERE)
    version = published(env)
    namespace = KVNamespace(KVEntry, env)
    old = [ago(env, timedelta(minutes=61))] * 50
    namespace.put_sync(BUDGET_KEY, [*old, *([ago(env, timedelta(minutes=50))] * (PER_HOUR - 1))])
    request_scan(env, version, "one", by="test")
    assert len(namespace.get_sync(BUDGET_KEY).require()) == PER_HOUR
    other = published(env, "other-skill")
    with pytest.raises(TooManyScans, match="the next is possible in 10 min"):
        request_scan(env, other, "one", by="test")
    assert read_scan(env, other.content_hash, "one") is None
    # Another environment has an hour of its own.
    request_scan(with_scanners(env, one=NOWHERE), version, "one", by="test")
    assert len(namespace.get_sync(BUDGET_KEY).require()) == PER_HOUR


@pytest.mark.parametrize(("state", "longest"), [(ScanState.PENDING, PENDING_FOR), (ScanState.RUNNING, RUNNING_FOR)])
def test_exactly_the_limit_is_overdue_and_less_is_not(env: WorkerEnv, state: ScanState, longest: timedelta) -> None:
    now = database_now(env.database)
    scan = ExternalScan("scan_1", "one", "c" * 64, state=state, requested_at=isoformat(now), started_at=isoformat(now))
    begun = parse_isoformat(isoformat(now))
    assert begun is not None
    assert not is_overdue(scan, begun + longest - timedelta(milliseconds=1))
    assert is_overdue(scan, begun + longest)


def test_pending_for_twenty_minutes_is_timed_out_and_may_be_asked_again(env: WorkerEnv) -> None:
    env = with_scanners(env, one=NOWHERE)
    version = published(env)
    first, _new = request_scan(env, version, "one", by="test")
    backdate(env, first, requested_at=ago(env, PENDING_FOR))
    assert run(env).timed_out == 1
    (scan,) = external_scans_sync(env, version.content_hash)
    assert (scan.state, scan.id) == (ScanState.TIMED_OUT, first.id)
    assert request_scan(env, version, "one", by="test")[1]


def test_what_is_published_is_asked_for_once_and_what_was_there_before_is_not(env: WorkerEnv) -> None:
    with scanner() as told:
        env = with_scanners(env, one=told.url)
        old = published(env, "old-skill")
        SkillVersion.objects.filter(pk=old.pk).update(created_at=database_now(env.database) - timedelta(hours=1))
        assert run(env).asked == 0
        new = published(env, "new-skill")
        assert run(env, dry_run=True).asked == 1
        report = run(env)
        assert (report.asked, report.taken) == (1, 1)
        assert run(env).asked == 0
        assert run(env, slug="old-skill").taken == 1
    assert [one["slug"] for one in told.documents] == ["new-skill", "old-skill"]
    headers, body = told.taken[0]
    assert is_signed(SECRET, int(headers[TIMESTAMP_HEADER]), body, headers[SIGNATURE_HEADER])
    document = told.documents[0]
    assert document["contentHash"] == new.content_hash
    assert document["archiveSha256"] == new.zip_sha256
    assert document["archiveUrl"] == f"{env.public_url}/skills/new-skill/download/{new.version}.zip"
    assert document["resultUrl"] == f"{env.public_url}/api/v1/external-scans/{document['scanId']}"


def test_a_scanner_that_is_away_is_asked_again_and_one_that_refuses_is_not(env: WorkerEnv) -> None:
    with scanner() as told:
        env = with_scanners(env, one=told.url)
        version = published(env)
        told.status = 503
        assert run(env, slug=version.skill.slug).waiting == 1
        assert len(told.taken) == 1
        told.status = 400
        assert run(env).refused == 1
        assert run(env).refused == 0
    (scan,) = external_scans_sync(env, version.content_hash)
    assert (scan.state, scan.error) == (ScanState.FAILED, "The scanner refused it with status 400.")


def test_nothing_listens_is_waiting_and_said(env: WorkerEnv) -> None:
    env = with_scanners(env, one=NOWHERE)
    published(env)
    report = run(env, slug="hello-skill")
    assert (report.waiting, report.taken) == (1, 0)
    assert "one could not be reached" in report.problems[0]


def test_the_limit_leaves_the_rest_for_later(env: WorkerEnv) -> None:
    with scanner() as told:
        env = with_scanners(env, one=told.url)
        run(env)
        names = [f"skill-{number}" for number in range(3)]
        for name in names:
            published(env, name)
        namespace = KVNamespace(KVEntry, env)
        namespace.put_sync(BUDGET_KEY, [ago(env, timedelta(minutes=1))] * (PER_HOUR - 1))
        report = run(env)
        assert (report.asked, report.limited) == (1, True)
        namespace.put_sync(BUDGET_KEY, [])
        assert run(env).asked == 2
    # The two of the later run may have been asked for in the same millisecond, and then either goes first.
    assert told.documents[0]["slug"] == names[0]
    assert sorted(one["slug"] for one in told.documents) == names


def test_the_environment_is_the_current_one(env: WorkerEnv) -> None:
    with pytest.raises(WorkerEnvMissing):
        async_to_sync(run_external_scans)()
    with pytest.raises(NothingToScan, match="no published version"):
        run(with_scanners(env, one=NOWHERE), slug="absent")


def test_a_damaged_scan_is_shown_to_nobody_and_replaced(env: WorkerEnv) -> None:
    env = with_scanners(env, one=NOWHERE)
    version = published(env)
    KVNamespace(KVEntry, env).put_sync(external_scan_key(version.content_hash, "one"), {"state": "ODD"})
    assert external_scans_sync(env, version.content_hash) == []
    assert request_scan(env, version, "one", by="test")[1]
