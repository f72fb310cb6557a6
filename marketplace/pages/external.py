"""What the pages of a skill say about scanners outside this registry."""

from __future__ import annotations

from typing import Any, Final

from marketplace.external_scans import ScanState, external_scans_sync
from marketplace.pages.skill import Found
from vskill.environments import WorkerEnv

EXTERNAL_WORDS: Final = {
    ScanState.PENDING: ("Asked, not begun", "", "clock"),
    ScanState.RUNNING: ("Being scanned", "tone-live", "clock"),
    ScanState.COMPLETED: ("Read it", "tone-note", "check"),
    ScanState.FAILED: ("Failed", "", "cross"),
    ScanState.TIMED_OUT: ("Did not answer", "", "question"),
}
"""The label, tone and icon of each state of a scan."""


def external_opinions(env: WorkerEnv, found: Found) -> list[dict[str, Any]]:
    """Return what each outside scanner said of the content of a version: an opinion that no verdict is made of."""
    opinions = []
    for scan in external_scans_sync(env, found.version.content_hash):
        label, tone, icon = EXTERNAL_WORDS[ScanState(scan.state)]
        opinions.append(
            {
                "provider": scan.provider,
                "version": scan.engine_version,
                "label": label,
                "tone": tone,
                "icon": icon,
                "at": scan.finished_at or scan.started_at or scan.requested_at,
                "finished": scan.state == ScanState.COMPLETED,
                "findings": list(scan.findings),
                "error": scan.error,
            }
        )
    return opinions
