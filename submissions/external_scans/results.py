"""Take a result that a scanner posts: all of it is checked, then all of it is written, or nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from marketplace.errors import SkillNotFound
from marketplace.external_scans import ExternalScan, ScanState
from marketplace.flags import FlagKind, flag
from submissions.external_scans.errors import ResultRefused
from submissions.external_scans.signing import is_recent, is_signed, read_timestamp
from submissions.external_scans.store import OPEN_STATES, is_overdue, scan_by_id, write_scan
from submissions.verification.findings import Finding, FindingKind, Severity, strongest_first
from vskill.environments import SecretMissing, WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.clock import database_now, isoformat
from vskill.kv.errors import VersionConflict
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

logger = logging.getLogger(__name__)

SECRET: Final = "external_scans"  # noqa: S105 - the name of a secret, not one
MAX_BODY: Final = 512 * 1024
MOST_FINDINGS: Final = 200
_LONGEST_LINE: Final = 10_000_000
# Longer than a signature is valid, on either side of the clock.
_SEEN_FOR: Final = timedelta(minutes=15)
_STATES: Final = {one.value: one for one in (ScanState.RUNNING, ScanState.COMPLETED, ScanState.FAILED)}


@dataclass(frozen=True)
class Posted:
    """A request as it arrived: its body, and the texts of its two headers, empty where they are missing."""

    scan_id: str
    body: bytes
    timestamp: str
    signature: str


def receive(env: WorkerEnv, posted: Posted) -> ExternalScan:
    """Take the result in ``posted`` and return the scan as it is then; raise ResultRefused with nothing written.

    In this order: the size, the signature, its age, the form, the environment, the scan, and whether it was seen
    before. Runs on a thread for database work.
    """
    if len(posted.body) > MAX_BODY:
        raise ResultRefused(413, "too_large", f"The body is larger than {MAX_BODY // 1024} KiB. Nothing was kept.")
    now = database_now(env.database)
    _check_signature(env, posted, now)
    document = _document(posted.body)
    if document.get("environment") != env.name:
        raise ResultRefused(403, "foreign_environment", "This scan belongs to another environment. Nothing was kept.")
    if document.get("scanId") != posted.scan_id:
        raise ResultRefused(400, "bad_request", "The body names another scan than the address. Nothing was kept.")
    state, changes = _changes(document, now)
    try:
        with transaction.atomic(using=env.database):
            return _write(env, posted, state, changes, now)
    except VersionConflict:
        raise ResultRefused(
            409, "conflict", "Another result of this scan arrived at the same moment. Nothing of this one was kept."
        ) from None


def _check_signature(env: WorkerEnv, posted: Posted, now: datetime) -> None:
    try:
        secret = env.secret(SECRET)
    except SecretMissing:
        raise ResultRefused(404, "not_offered", "This registry takes no results of external scanners.") from None
    timestamp = read_timestamp(posted.timestamp)
    if timestamp is None or not is_signed(secret, timestamp, posted.body, posted.signature):
        raise ResultRefused(401, "bad_signature", "The signature is missing or wrong. Nothing was kept.")
    if not is_recent(timestamp, now.timestamp()):
        raise ResultRefused(401, "too_old", "This was signed more than 5 minutes ago, or ahead. Nothing was kept.")


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise _malformed("The body is not JSON.") from None
    if not isinstance(document, dict):
        raise _malformed("The body is a JSON object.")
    return document


def _malformed(what: str) -> ResultRefused:
    return ResultRefused(400, "bad_request", f"{what} Nothing was kept.")


def _changes(document: Mapping[str, Any], now: datetime) -> tuple[ScanState, dict[str, object]]:
    state = _STATES.get(str(document.get("state")))
    if state is None:
        raise _malformed(f"The state is one of {', '.join(_STATES)}.")
    if state is ScanState.RUNNING:
        return state, {"started_at": isoformat(now)}
    changes: dict[str, object] = {
        "finished_at": isoformat(now),
        "engine_version": visible(_text(document, "engineVersion", needed=False), 100),
        "error": visible(_text(document, "error", needed=state is ScanState.FAILED), 300),
    }
    if state is ScanState.COMPLETED:
        changes["findings"] = _findings(document)
    return state, changes


def _findings(document: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    found = document.get("findings")
    if not isinstance(found, list) or len(found) > MOST_FINDINGS:
        raise _malformed(f"findings is a list of at most {MOST_FINDINGS}.")
    return tuple(one.as_json() for one in strongest_first(_finding(item) for item in found))


def _finding(item: Any) -> Finding:
    if not isinstance(item, dict):
        raise _malformed("A finding is an object.")
    line = item.get("line")
    # A truth value is a number to Python.
    if line is not None and (isinstance(line, bool) or not isinstance(line, int) or not 0 < line < _LONGEST_LINE):
        raise _malformed("The line of a finding is a number from 1, or null.")
    try:
        severity = Severity(str(item.get("severity")))
    except ValueError:
        raise _malformed(f"The severity of a finding is one of {', '.join(Severity)}.") from None
    return Finding(
        rule_id=visible(_text(item, "ruleId"), 120),
        severity=severity,
        title=_text(item, "title"),
        file=_text(item, "file", needed=False),
        line=line,
        excerpt=_text(item, "excerpt", needed=False),
        why=_text(item, "why", needed=False),
        advice=_text(item, "advice", needed=False),
        kind=FindingKind.RISK,
    )


def _text(item: Mapping[str, Any], name: str, *, needed: bool = True) -> str:
    text = item.get(name, "" if not needed else None)
    if not isinstance(text, str) or (needed and not text.strip()):
        raise _malformed(f"{name} is a text.")
    return text


def _write(
    env: WorkerEnv, posted: Posted, state: ScanState, changes: Mapping[str, object], now: datetime
) -> ExternalScan:
    kept = scan_by_id(env, posted.scan_id)
    if kept is None:
        raise ResultRefused(404, "unknown_scan", "There is no such scan, or a newer one replaced it. Nothing was kept.")
    try:
        KVNamespace(KVEntry, env).put_sync(
            f"external-scan-seen:{posted.signature[-64:]}", posted.scan_id, ttl=_SEEN_FOR, expect_version=0
        )
    except VersionConflict:
        raise ResultRefused(409, "replayed", "This very message was taken before. Nothing was changed.") from None
    if kept.scan.state not in OPEN_STATES:
        raise ResultRefused(409, "finished", f"This scan has ended as {kept.scan.state}. Nothing was changed.")
    if is_overdue(kept.scan, now):
        raise ResultRefused(409, "finished", "This scan was not heard of for too long. Nothing was changed.")
    # The findings name the scanner that was asked, whatever they call themselves.
    findings = changes.get("findings")
    if isinstance(findings, tuple):
        changes = {**changes, "findings": tuple({**one, "engine": kept.scan.provider} for one in findings)}
    scan = write_scan(env, kept, state=state, **changes)
    _flag(env, scan)
    return scan


def _flag(env: WorkerEnv, scan: ExternalScan) -> None:
    """Flag the version for a critical finding, so that a person looks; nothing that a scanner says takes a flag off."""
    gravest = next((one for one in scan.findings if one["severity"] == Severity.CRITICAL), None)
    if gravest is None:
        return
    place = f" ({gravest['file']})" if gravest["file"] else ""
    reason = f"{scan.provider}, an engine outside this registry, reports: {gravest['title']}{place}."
    try:
        flag(env, scan.slug, FlagKind.OPINION, reason, version=scan.version, actor=f"external scan: {scan.provider}")
    except SkillNotFound:
        # It was withdrawn or renamed meanwhile; the opinion is kept with its content.
        logger.warning("%s %s was to be flagged, and is not there any more", scan.slug, scan.version)
