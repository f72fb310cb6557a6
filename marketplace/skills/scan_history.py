"""Remember what each scan of a published version came to, in a bounded number of rows, and tell it in their order.

The scan that a version was published by is kept in the version itself, and what a newer scan found in ``LaterScan``.
Here is what came of all later ones, of the registry's engines and of scanners outside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Exists, F, OuterRef, QuerySet

from marketplace.external_scans import ExternalScan, external_scans_sync
from marketplace.judgement import verdict_of
from marketplace.models import LaterScan, PastScan, SkillVersion
from vskill.environments import WorkerEnv
from vskill.kv.clock import parse_isoformat

# Of one version and one scanner. The oldest row goes where there would be more.
MOST_KEPT: Final = 50
# Of scanners outside, all of them together, about this version and the newest others that have the same content.
MOST_OUTSIDE: Final = 100
_MOST_COPIES: Final = 100
_MENDED_AT_ONCE: Final = 500


@dataclass(frozen=True)
class ScanSeen:
    """What a scan of a version came to, or several in a row that came to the same, from ``first_at`` to ``last_at``.

    ``scanner`` is empty for the engines of the registry. ``outcome`` is a verdict, or the state of a scan outside.
    ``published`` says that the version was published by this scan.
    """

    scanner: str
    outcome: str
    engines: Sequence[Mapping[str, Any]]
    findings: Mapping[str, int]
    first_at: datetime
    last_at: datetime
    times: int = 1
    published: bool = False

    @property
    def named_engines(self) -> list[str]:
        """Return the engines with their versions, in words."""
        return [f"{one.get('name', '')} {one.get('version', '')}".strip() for one in self.engines]

    @property
    def found(self) -> int:
        """Return the number of findings."""
        return sum(self.findings.values())


def by_severity(findings: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many findings there are of each severity; what only says that something was not read is none."""
    counts = Counter(str(one.get("severity", "")) for one in findings if one.get("kind") != "coverage")
    return dict(sorted(counts.items()))


def note_scan(env: WorkerEnv, version_id: int, scan: ScanSeen) -> None:
    """Add a scan to the history of a version; call it in the transaction that records the scan.

    Where it came to the same as the newest of its scanner, with the same engines, that row is seen once more. Whoever
    calls it holds the row or the entry of the scan, so that no other scan of both is noted at the same time.
    """
    rows = _of(env, version_id, scan.scanner)
    newest = rows.order_by("-pk").first()
    if newest is not None and _alike(newest, scan):
        rows.filter(pk=newest.pk).update(last_at=scan.last_at, times=F("times") + 1)
        return
    made: dict[str, Any] = {
        "outcome": scan.outcome,
        "engines": [dict(one) for one in scan.engines],
        "findings": dict(scan.findings),
        "first_at": scan.first_at,
        "last_at": scan.last_at,
    }
    rows.create(namespace=env.name, version_id=version_id, scanner=scan.scanner, **made)
    kept_from = rows.order_by("-pk").values_list("pk", flat=True)[MOST_KEPT - 1 : MOST_KEPT].first()
    if kept_from is not None:
        rows.filter(pk__lt=kept_from).delete()


def seen_in(later: LaterScan) -> ScanSeen:
    """Return what a later scan of the registry's engines came to."""
    at = later.scanned_at
    return ScanSeen("", later.verdict, later.engines, by_severity(later.findings), at, at)


def seen_outside(scan: ExternalScan) -> ScanSeen | None:
    """Return what a scan by a scanner outside came to, ``None`` where it has not ended."""
    at = parse_isoformat(scan.finished_at)
    if at is None:
        return None
    engine = {"name": scan.provider, "version": scan.engine_version}
    return ScanSeen(scan.provider, str(scan.state), [engine], by_severity(scan.findings), at, at)


def scan_history(env: WorkerEnv, version: SkillVersion) -> list[ScanSeen]:
    """Return the scans of a version, the newest first; the last is the one that it was published by.

    What scanners outside said of the same content of another version is among them.
    """
    own = _of(env, version.pk, "").order_by("-pk")
    same = SkillVersion.objects.using(env.database).filter(namespace=env.name, content_hash=version.content_hash)
    numbers = {version.pk, *same.order_by("-pk").values_list("pk", flat=True)[:_MOST_COPIES]}
    outside = PastScan.objects.using(env.database).filter(version__in=numbers).exclude(scanner="")
    seen = [_seen(row) for row in [*own, *outside.order_by("-pk")[:MOST_OUTSIDE]]]
    later: LaterScan | None = getattr(version, "later_scan", None)
    newest = [seen_in(later)] if later is not None else []
    newest += [
        one for scan in external_scans_sync(env, version.content_hash) if (one := seen_outside(scan)) is not None
    ]
    for scan in newest:
        # An earlier release recorded it.
        if not any(one.scanner == scan.scanner and one.last_at >= scan.last_at for one in seen):
            seen.append(scan)
    first = version.created_at
    published = ScanSeen(
        "", verdict_of(version), version.engines, by_severity(version.findings), first, first, published=True
    )
    return [*sorted(seen, key=lambda one: one.last_at, reverse=True), published]


def unnoted_scans(env: WorkerEnv) -> QuerySet[LaterScan]:
    """Return the later scans that the history of their version does not have."""
    noted = PastScan.objects.filter(version=OuterRef("version"), scanner="", last_at__gte=OuterRef("scanned_at"))
    return LaterScan.objects.using(env.database).filter(~Exists(noted), namespace=env.name)


def note_missing(env: WorkerEnv) -> int:
    """Add what is missing in histories, some hundred at once in the caller's transaction; return how many that were."""
    missing = list(unnoted_scans(env).select_for_update(of=("self",)).order_by("pk")[:_MENDED_AT_ONCE])
    for later in missing:
        note_scan(env, later.version_id, seen_in(later))
    return len(missing)


def _of(env: WorkerEnv, version_id: int, scanner: str) -> QuerySet[PastScan]:
    return PastScan.objects.using(env.database).filter(namespace=env.name, version_id=version_id, scanner=scanner)


def _alike(row: PastScan, scan: ScanSeen) -> bool:
    kept = (row.outcome, list(row.engines), dict(row.findings))
    return kept == (scan.outcome, [dict(one) for one in scan.engines], dict(scan.findings))


def _seen(row: PastScan) -> ScanSeen:
    return ScanSeen(row.scanner, row.outcome, row.engines, row.findings, row.first_at, row.last_at, times=row.times)
