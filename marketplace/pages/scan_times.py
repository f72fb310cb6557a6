"""The history of a version's scans, as the page of its scan shows it: a picture, and a table of the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils import timezone

from marketplace.external_scans import ScanState
from marketplace.judgement import Judgement, judge
from marketplace.pages.external import EXTERNAL_WORDS
from marketplace.pages.skill import Found
from marketplace.pages.wording import Words, verdict_words
from marketplace.pictures.timeline import CIRCLE, MOST_MARKS, SQUARE, TRIANGLE, Lane, Mark, draw_timeline
from marketplace.skills.scan_history import MOST_KEPT, ScanSeen, scan_history
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible

OWN: Final = "This registry"
SHAPES: Final = {
    CIRCLE: "nothing that would hold it",
    TRIANGLE: "something that would hold it, or a finding of an engine outside",
    SQUARE: "no result",
}
"""What each shape of the picture says."""
_SEVERITIES: Final = ("critical", "high", "medium", "low", "info")


def scan_times(env: WorkerEnv, found: Found) -> dict[str, Any]:
    """Return the scans of a version, the newest first, and the picture of them."""
    scans = scan_history(env, found.version)
    lanes = {OWN: [one for one in scans if not one.scanner]}
    for one in scans:
        if one.scanner:
            lanes.setdefault(visible(one.scanner, 40), []).append(one)
    drawn = [Lane(name, [_mark(one) for one in reversed(held)]) for name, held in lanes.items()]
    start, end = found.version.created_at, timezone.now()
    count = sum(one.times for one in scans)
    summary = f"{count} scan{'' if count == 1 else 's'} of version {found.version.version} since its publication. " + (
        " ".join(f"{lane.name}: {lane.marks[-1].words}, the newest." for lane in drawn)
    )
    shapes = {mark.shape for lane in drawn for mark in lane.marks}
    return {
        "svg": draw_timeline(drawn, start, end, summary),
        "start": start,
        "rows": [_row(one) for one in scans],
        "legend": [{"shape": shape, "words": words} for shape, words in SHAPES.items() if shape in shapes],
        "left_out": any(len(lane.marks) > MOST_MARKS for lane in drawn),
        "most_kept": MOST_KEPT if any(len(lane.marks) >= MOST_KEPT for lane in drawn) else 0,
    }


def _row(scan: ScanSeen) -> dict[str, Any]:
    words = _words(scan)
    return {
        "by": scan.named_engines or ([visible(scan.scanner, 40)] if scan.scanner else []),
        "outside": bool(scan.scanner),
        "published": scan.published,
        "label": words.label,
        "icon": words.icon,
        "tone": f"tone-{words.tone}" if words.tone else "",
        "found": scan.found if _said_something(scan) else None,
        "severities": in_words(scan.findings),
        "first_at": scan.first_at,
        "last_at": scan.last_at,
        "times": scan.times,
    }


def in_words(findings: Mapping[str, int]) -> str:
    """Return how many findings of each severity there are, the gravest first."""
    known = [f"{findings[name]} {name}" for name in _SEVERITIES if findings.get(name)]
    return ", ".join([*known, *(f"{count} {name}" for name, count in findings.items() if name not in _SEVERITIES)])


def _words(scan: ScanSeen) -> Words:
    if not scan.scanner:
        return verdict_words(scan.outcome)
    label, tone, icon = EXTERNAL_WORDS[ScanState(scan.outcome)]
    return Words(label, "", icon, tone.removeprefix("tone-"))


def _said_something(scan: ScanSeen) -> bool:
    """Return whether the number of findings tells anything: of what read nothing to its end, 0 would be no number."""
    return scan.found > 0 or _shape(scan) != SQUARE


def _shape(scan: ScanSeen) -> str:
    if scan.scanner:
        return SQUARE if scan.outcome != ScanState.COMPLETED else TRIANGLE if scan.found else CIRCLE
    if scan.outcome == "inconclusive":
        return SQUARE
    return {Judgement.PASSED: CIRCLE, Judgement.SUSPICIOUS: TRIANGLE, Judgement.UNSCANNED: SQUARE}[judge(scan.outcome)]


def _mark(scan: ScanSeen) -> Mark:
    at = scan.last_at
    words = f"{at.day} {at:%b %Y}: {_words(scan).label}"
    return Mark(at, _shape(scan), f"{words}, {in_words(scan.findings)}" if scan.findings else words)
