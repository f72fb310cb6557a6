"""Keep external scans: ask for one within the limits, find those that are open, and write how one ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from django.db import transaction

from marketplace.external_scans import KEPT_FOR, ExternalScan, ScanState, external_scan_key
from marketplace.models import SkillVersion
from marketplace.skills.scan_history import note_scan, seen_outside
from submissions.external_scans.errors import TooManyScans, UnknownScanner
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat, parse_isoformat
from vskill.kv.errors import VersionConflict
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

PER_HOUR: Final = 100
PENDING_FOR: Final = timedelta(minutes=20)
# The specification names no limit for a scan that has begun; a scanner that died must not block the next one for ever.
RUNNING_FOR: Final = timedelta(hours=1)
# After its end a scan is known for this long, so that a late result is told why it is refused.
KNOWN_FOR: Final = timedelta(days=1)
OPEN_PREFIX: Final = "external-scan-id:"
BUDGET_KEY: Final = "external-scans-of-the-hour"
_HOUR: Final = timedelta(hours=1)
_ATTEMPTS: Final = 5
OPEN_STATES: Final = (ScanState.PENDING, ScanState.RUNNING)


@dataclass(frozen=True)
class Kept:
    """A scan as it was read, and the version of its entry."""

    scan: ExternalScan
    entry_version: int


def scanners_of(env: WorkerEnv) -> dict[str, str]:
    """Return the address of each scanner of an environment by its name."""
    return dict(env.policy.external_scanners)


def read_scan(env: WorkerEnv, content_hash: str, provider: str) -> Kept | None:
    """Return the newest scan of a content by a scanner, or ``None`` where there is none that can be read."""
    outcome = KVNamespace(KVEntry, env).get_sync(external_scan_key(content_hash, provider))
    scan = ExternalScan.from_value(outcome.value) if outcome.found else None
    return None if scan is None else Kept(scan, outcome.version)


def scan_by_id(env: WorkerEnv, scan_id: str) -> Kept | None:
    """Return the scan with an id where it is still the newest of its content and scanner, or ``None``."""
    pointer = KVNamespace(KVEntry, env).get_sync(f"{OPEN_PREFIX}{scan_id}")
    place = pointer.value if pointer.found and isinstance(pointer.value, dict) else {}
    kept = read_scan(env, str(place.get("contentHash", "")), str(place.get("provider", "")))
    return kept if kept is not None and kept.scan.id == scan_id else None


def is_overdue(scan: ExternalScan, now: datetime) -> bool:
    """Tell whether an open scan was not heard of for too long; exactly that long is too long."""
    if scan.state == ScanState.PENDING:
        begun, longest = parse_isoformat(scan.requested_at), PENDING_FOR
    elif scan.state == ScanState.RUNNING:
        begun, longest = parse_isoformat(scan.started_at), RUNNING_FOR
    else:
        return False
    return begun is None or now - begun >= longest


def request_scan(
    env: WorkerEnv, version: SkillVersion, provider: str, *, by: str, most: int = PER_HOUR
) -> tuple[ExternalScan, bool]:
    """Ask for a scan of the content of ``version`` by ``provider``; return it, and whether it is a new one.

    One that is PENDING or RUNNING is returned as it is, so that however many ask, one runs. ``by`` is who asks. At
    most ``most`` begin in an hour, by the clock of the database. Raises UnknownScanner and TooManyScans with nothing
    written, and VersionConflict where many ask at the same moment.
    """
    if provider not in scanners_of(env):
        known = ", ".join(scanners_of(env)) or "none"
        raise UnknownScanner(f"Environment {env.name!r} has no external scanner {provider!r}. Configured: {known}.")
    for attempt in range(_ATTEMPTS):
        try:
            with transaction.atomic(using=env.database):
                return _request(env, version, provider, by, most)
        except VersionConflict:
            if attempt + 1 == _ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def _request(env: WorkerEnv, version: SkillVersion, provider: str, by: str, most: int) -> tuple[ExternalScan, bool]:
    namespace = KVNamespace(KVEntry, env)
    now = database_now(env.database)
    key = external_scan_key(version.content_hash, provider)
    # Read once: what is decided and the version that the write expects must be of the same moment.
    outcome = namespace.get_sync(key)
    before = ExternalScan.from_value(outcome.value) if outcome.found else None
    if before is not None and before.state in OPEN_STATES and not is_overdue(before, now):
        return before, False
    _count(namespace, now, most)
    scan = ExternalScan(
        id=f"scan_{uuid4().hex}",
        provider=provider,
        content_hash=version.content_hash,
        slug=version.skill.slug,
        version=version.version,
        requested_at=isoformat(now),
        requested_by=by,
    )
    # An entry that cannot be read has a version too, and an absent one has 0.
    namespace.put_sync(key, scan.to_value(), ttl=KEPT_FOR, expect_version=outcome.version)
    place = {"contentHash": scan.content_hash, "provider": provider}
    namespace.put_sync(f"{OPEN_PREFIX}{scan.id}", place, ttl=KNOWN_FOR)
    return scan, True


def _count(namespace: KVNamespace, now: datetime, most: int) -> None:
    """Count one more scan of this hour, in the caller's transaction; raise TooManyScans where it would be too many."""
    held = namespace.get_sync(BUDGET_KEY)
    times = held.value if held.found and isinstance(held.value, list) else []
    recent = [text for text in times if (moment := parse_isoformat(text)) is not None and now - moment < _HOUR]
    if len(recent) >= most:
        # When so many of them are an hour old that one more is within the limit.
        first = parse_isoformat(sorted(recent)[len(recent) - most]) or now
        left = max(timedelta(minutes=1), first + _HOUR - now)
        raise TooManyScans(
            f"{len(recent)} external scans were asked for within the last hour. Nothing was asked; "
            f"the next is possible in {round(left / timedelta(minutes=1))} min.",
            round(left.total_seconds()),
        )
    namespace.put_sync(BUDGET_KEY, [*recent, isoformat(now)], ttl=_HOUR, expect_version=held.version)


def open_scans(env: WorkerEnv) -> list[Kept]:
    """Return the scans that are PENDING or RUNNING, the oldest first."""
    namespace = KVNamespace(KVEntry, env)
    ids = [one.key.removeprefix(OPEN_PREFIX) for one in namespace.get_all_sync(OPEN_PREFIX) if one.found]
    kept = [one for scan_id in ids if (one := scan_by_id(env, scan_id)) is not None]
    return sorted((one for one in kept if one.scan.state in OPEN_STATES), key=lambda one: one.scan.requested_at)


def write_scan(env: WorkerEnv, kept: Kept, **changes: object) -> ExternalScan:
    """Write ``changes`` of a scan that was read, and return it; raise VersionConflict where another wrote first.

    A scan that ends goes into the history of its version, in the same transaction.
    """
    changed: ExternalScan = replace(kept.scan, **changes)  # type: ignore[arg-type]  # names of its fields
    with transaction.atomic(using=env.database):
        KVNamespace(KVEntry, env).put_sync(
            external_scan_key(changed.content_hash, changed.provider),
            changed.to_value(),
            ttl=KEPT_FOR,
            expect_version=kept.entry_version,
        )
        if kept.scan.state in OPEN_STATES and changed.state not in OPEN_STATES:
            _note(env, changed)
    return changed


def _note(env: WorkerEnv, scan: ExternalScan) -> None:
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name, content_hash=scan.content_hash)
    # By the number that it was asked for, wherever its skill was moved since; what no version has leaves no history.
    named = versions.filter(version=scan.version).order_by("pk").values_list("pk", flat=True)
    number = named.filter(skill__slug=scan.slug).first() or named.first()
    if number is not None and (seen := seen_outside(scan)) is not None:
        note_scan(env, number, seen)


def end_overdue(env: WorkerEnv, now: datetime) -> int:
    """Mark the open scans that were not heard of for too long as TIMED_OUT, and return their number."""
    ended = 0
    for kept in open_scans(env):
        if not is_overdue(kept.scan, now):
            continue
        waited = PENDING_FOR if kept.scan.state == ScanState.PENDING else RUNNING_FOR
        minutes = waited // timedelta(minutes=1)
        error = f"Nothing was heard of it for {minutes} minutes; it can be asked for again."
        try:
            write_scan(env, kept, state=ScanState.TIMED_OUT, finished_at=isoformat(now), error=error)
        except VersionConflict:
            continue
        ended += 1
    return ended
