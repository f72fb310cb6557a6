"""What the scan report says about the latest scan of a version after its publication."""

from __future__ import annotations

from typing import Any

from marketplace.models import LaterScan
from marketplace.pages.skill import Found
from marketplace.pages.wording import verdict_words
from vskill.environments import WorkerEnv


def later_scan(env: WorkerEnv, found: Found) -> dict[str, Any] | None:
    """Return the latest later scan of a version, ``None`` where it has been scanned for its publication alone."""
    scan = LaterScan.objects.using(env.database).filter(version=found.version).first()
    if scan is None:
        return None
    return {
        "verdict": scan.verdict,
        "label": verdict_words(scan.verdict).label,
        "summary": scan.verdict_summary,
        "scanned_at": scan.scanned_at,
        "engines": [f"{one.get('name', '')} {one.get('version', '')}".strip() for one in scan.engines],
        # What was not read is said by the scan that it was published by.
        "findings": [one for one in scan.findings if one.get("kind") != "coverage"],
    }
