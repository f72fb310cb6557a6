"""The newest scan that read a published version: the one that it was published by, or a later one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from marketplace.judgement import verdict_of, was_scanned
from marketplace.models import LaterScan, SkillVersion


@dataclass(frozen=True)
class NewestScan:
    """What the newest scan found: ``findings`` and ``engines`` as they are stored, and when it was.

    ``again`` says that it is later than the publication. ``failed`` is a later attempt that could read nothing, so that
    what was known before still holds.
    """

    verdict: str
    summary: str
    findings: Sequence[dict[str, Any]]
    engines: Sequence[dict[str, Any]]
    scanned_at: datetime
    again: bool = False
    failed: LaterScan | None = None

    @property
    def named_engines(self) -> list[str]:
        """Return the engines with their versions, in words."""
        return [f"{one.get('name', '')} {one.get('version', '')}".strip() for one in self.engines]


def scan_of_publication(version: SkillVersion) -> NewestScan:
    """Return the scan that a version was published by."""
    return NewestScan(
        verdict_of(version), version.verdict_summary, version.findings, version.engines, version.created_at
    )


def newest_scan(version: SkillVersion) -> NewestScan:
    """Return the newest scan of a version; it is read on the connection of the calling thread, once for each object."""
    later: LaterScan | None = getattr(version, "later_scan", None)
    first = scan_of_publication(version)
    if later is None:
        return first
    if not was_scanned(later.engines):
        return NewestScan(first.verdict, first.summary, first.findings, first.engines, first.scanned_at, failed=later)
    return NewestScan(later.verdict, later.verdict_summary, later.findings, later.engines, later.scanned_at, again=True)
