"""Ask scanners outside this registry: for what was published, for what somebody asks, and again where none answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import urllib3
from django.urls import reverse

from marketplace.addresses import archive_href
from marketplace.catalog import fetchable_versions, find_skill_sync, find_version_sync
from marketplace.external_scans import ExternalScan, ScanState, external_scan_key
from marketplace.models import SkillVersion
from submissions.external_scans.errors import NothingToScan, TooManyScans
from submissions.external_scans.results import SECRET
from submissions.external_scans.signing import signed_headers
from submissions.external_scans.store import Kept, end_overdue, open_scans, request_scan, scanners_of, write_scan
from submissions.external_scans.ways import Ways
from vskill.accounts.access import with_pass
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.clock import database_now, isoformat, parse_isoformat
from vskill.kv.errors import VersionConflict
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.reader import CHUNK_SIZE, read_chunk
from vskill.kv.threads import writers
from vskill.processes.run_lock import run_lock
from vskill.worker_context import require_worker_env

WORK: Final = "external_scans"
CURSOR_KEY: Final = "external-scans-cursor"
# A transaction that began earlier may end later, so the time just before the cursor is read again.
_OVERLAP: Final = timedelta(minutes=2)
_TAKEN: Final = (200, 201, 202)
_REFUSED: Final = range(400, 500)
_LATER: Final = (408, 429)


@dataclass
class DispatchReport:
    """What one run did: how many scans were asked for, taken, refused by their scanner, and ended as overdue.

    ``waiting`` counts those whose scanner could not be reached, and ``limited`` says that the limit of an hour left
    some of what was published for later. In a dry run ``asked`` counts what would be asked for.
    """

    environment: str
    asked: int = 0
    taken: int = 0
    refused: int = 0
    waiting: int = 0
    timed_out: int = 0
    limited: bool = False
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``."""
        return {
            "environment": self.environment,
            "asked": self.asked,
            "taken": self.taken,
            "refused": self.refused,
            "waiting": self.waiting,
            "timedOut": self.timed_out,
            "limited": self.limited,
            "problems": self.problems,
        }


async def run_external_scans(*, slug: str = "", provider: str = "", dry_run: bool = False) -> DispatchReport:
    """Ask for what is due in the current environment, and send what no scanner has taken yet.

    Without ``slug`` that is whatever was published since the last run, by every scanner; with it, the latest version of
    one skill, also where it was scanned before, by every scanner or by ``provider``. ``dry_run`` only counts. One run
    at a time in an environment, on whatever machine. Raises ``AlreadyRunning``, ``WorkerEnvMissing`` outside a scope,
    and for a ``slug`` what ``ask`` raises.
    """
    env = require_worker_env()
    report = DispatchReport(env.name)
    if not scanners_of(env) and not slug:
        return report
    if dry_run:
        report.asked = await writers.run(_count_due, env)
        return report
    async with run_lock(env, WORK):
        report.timed_out = await writers.run(_end_overdue, env)
        if slug:
            report.asked = await writers.run(ask, env, slug, by="command", provider=provider)
        else:
            await writers.run(_ask_for_published, env, report)
        await writers.run(_send_all, env, report)
    return report


def ask(env: WorkerEnv, slug: str, *, by: str, provider: str = "") -> int:
    """Ask every scanner, or ``provider``, for the latest version of a skill; return how many scans are new.

    The next run sends them. ``by`` is who asks. Raises NothingToScan, UnknownScanner and TooManyScans.
    """
    skill = find_skill_sync(env, slug)
    version = find_version_sync(env, skill) if skill is not None and skill.latest_version else None
    if version is None:
        raise NothingToScan(f"There is no published version of {visible(slug)!r}. Nothing was asked.")
    if not scanners_of(env):
        raise NothingToScan(f"Environment {env.name!r} has no external scanner. Nothing was asked.")
    names = [provider] if provider else sorted(scanners_of(env))
    return sum(request_scan(env, version, name, by=by)[1] for name in names)


def _end_overdue(env: WorkerEnv) -> int:
    return end_overdue(env, database_now(env.database))


def _cursor(env: WorkerEnv) -> datetime | None:
    held = KVNamespace(KVEntry, env).get_sync(CURSOR_KEY)
    return parse_isoformat(held.value) if held.found else None


def _unscanned(env: WorkerEnv, since: datetime) -> Iterator[tuple[SkillVersion, tuple[str, ...]]]:
    """Yield each version that was published since, the oldest first, and the scanners that were never asked for it."""
    rows = fetchable_versions(SkillVersion.objects.using(env.database).filter(namespace=env.name))
    rows = rows.filter(created_at__gt=since - _OVERLAP).select_related("skill").order_by("created_at", "pk")
    light = rows.only("content_hash", "version", "created_at", "skill__slug", "skill__key")
    names = sorted(scanners_of(env))
    start = 0
    while chunk := list(light[start : start + CHUNK_SIZE // len(names)]):
        keys = {(one.pk, name): external_scan_key(one.content_hash, name) for one in chunk for name in names}
        outcomes = read_chunk(KVEntry, env.database, env.name, list(dict.fromkeys(keys.values())))
        for one in chunk:
            yield one, tuple(name for name in names if outcomes[keys[one.pk, name]].absent)
        start += len(chunk)


def _count_due(env: WorkerEnv) -> int:
    since = _cursor(env)
    return 0 if since is None else sum(len(names) for _version, names in _unscanned(env, since))


def _ask_for_published(env: WorkerEnv, report: DispatchReport) -> None:
    namespace = KVNamespace(KVEntry, env)
    since = _cursor(env)
    if since is None:
        # Scanners were just configured: what is there already is asked for on demand.
        namespace.put_sync(CURSOR_KEY, isoformat(database_now(env.database)))
        return
    handled = since
    try:
        for version, names in _unscanned(env, since):
            for name in names:
                report.asked += request_scan(env, version, name, by="publication")[1]
            handled = max(handled, version.created_at)
    except TooManyScans:
        report.limited = True
    if handled != since:
        namespace.put_sync(CURSOR_KEY, isoformat(handled))


def _send_all(env: WorkerEnv, report: DispatchReport) -> None:
    away: set[str] = set()
    with Ways(env) as ways:
        for kept in open_scans(env):
            scan = kept.scan
            if scan.state != ScanState.PENDING or scan.sent_at:
                continue
            if scan.provider in away:
                report.waiting += 1
            elif not _send(env, kept, ways, report):
                away.add(scan.provider)


def _send(env: WorkerEnv, kept: Kept, ways: Ways, report: DispatchReport) -> bool:
    """Send one scan to its scanner; return False where that did not answer, so that others need not be tried now."""
    scan = kept.scan
    document = _document(env, scan)
    now = database_now(env.database)
    if document is None:
        _end(env, kept, f"Version {scan.version} is not offered any more.", now)
        report.refused += 1
        return True
    body = json.dumps(document).encode()
    headers = signed_headers(env.secret(SECRET), int(now.timestamp()), body)
    try:
        url = scanners_of(env)[scan.provider]
        answer = ways.to(url).request("POST", url, body=body, headers=headers, redirect=False, preload_content=False)
        answer.release_conn()
        status = answer.status
    except (urllib3.exceptions.HTTPError, KeyError, OSError) as error:
        report.waiting += 1
        report.problems.append(f"{scan.provider} could not be reached: {visible(type(error).__name__, 80)}")
        return False
    if status in _TAKEN:
        report.taken += 1
        try:
            write_scan(env, kept, sent_at=isoformat(now))
        except VersionConflict:
            # It has answered already.
            return True
    elif status in _REFUSED and status not in _LATER:
        _end(env, kept, f"The scanner refused it with status {status}.", now)
        report.refused += 1
        report.problems.append(f"{scan.provider} refused {scan.slug} {scan.version} with status {status}")
    else:
        report.waiting += 1
        report.problems.append(f"{scan.provider} answered with status {status}")
        return False
    return True


def _end(env: WorkerEnv, kept: Kept, error: str, now: datetime) -> None:
    try:
        write_scan(env, kept, state=ScanState.FAILED, finished_at=isoformat(now), error=error)
    except VersionConflict:
        return


def _document(env: WorkerEnv, scan: ExternalScan) -> dict[str, Any] | None:
    """Return what a scanner needs to know, or ``None`` where the version cannot be fetched any more."""
    skill = find_skill_sync(env, scan.slug)
    version = find_version_sync(env, skill, scan.version) if skill is not None else None
    if skill is None or version is None or version.content_hash != scan.content_hash:
        return None
    return {
        "scanId": scan.id,
        "environment": env.name,
        "provider": scan.provider,
        "slug": skill.slug,
        "version": version.version,
        "contentHash": version.content_hash,
        "archiveUrl": f"{env.public_url}{with_pass(env, archive_href(skill.slug, version.version, 'zip'))}",
        "archiveSha256": version.zip_sha256,
        "archiveSize": version.zip_size,
        "resultUrl": f"{env.public_url}{reverse('submissions:external-scan', args=[scan.id])}",
    }
