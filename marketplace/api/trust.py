"""Our verdicts in the terms of each public client; never better than the verdict itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from marketplace.judgement import Judgement, flagged, judge, verdict_of, warning
from marketplace.models import SkillEntry, SkillVersion
from marketplace.records import Visibility
from marketplace.skills.newest_scan import newest_scan

_SEVERITIES: Final = {"critical": "critical", "high": "critical", "medium": "warn"}
# clawhub's page of a version prints only the states that it knows, and none of them means "was not scanned".
_SECURITY: Final = {
    Judgement.PASSED: "clean",
    Judgement.SUSPICIOUS: "suspicious",
    Judgement.UNSCANNED: "unscanned",
}


@dataclass(frozen=True, slots=True)
class Dialects:
    """What each dialect says about one published skill or version.

    ``warning`` is a sentence for texts that every client prints, empty where nothing is to be said.

    clawhub: ``suspicious`` makes its installer ask, or refuse without ``--force``; ``moderation`` is the verdict of its
    moderation object, and ``None`` where there is no such object, because the client prints CLEAN for an object without
    a verdict. ``security`` is the state of a version, and ``verified`` the answer of ``clawhub skill verify``.

    vskill: ``trust_tier`` runs from T0 (not installed without ``--force``) to T4; the top two stand for more than a
    static scan, so none gets them. ``certification_tier`` is empty or ``VERIFIED``, and ``tainted`` flags a skill.
    """

    warning: str
    suspicious: bool
    moderation: str | None
    security: str
    verified: bool
    trust_tier: str
    certification_tier: str
    tainted: bool


def dialects(verdict: str, visibility: str = Visibility.VISIBLE, *, flag_reason: str = "") -> Dialects:
    """Return what each dialect says about a skill with this ``verdict``, ``visibility`` and ``flag_reason``.

    It is the only place that translates a verdict. See ``said_of`` for a version.
    """
    judgement = judge(verdict, flag_reason)
    passed, suspicious = judgement is Judgement.PASSED, judgement is Judgement.SUSPICIOUS
    shown = visibility == Visibility.VISIBLE
    tier = "T2" if verdict == "clear" else "T1"
    return Dialects(
        warning=warning(verdict, flag_reason),
        suspicious=suspicious,
        moderation="clean" if passed else "suspicious" if suspicious else None,
        security=_SECURITY[judgement],
        verified=passed and shown,
        trust_tier=tier if shown and not suspicious else "T0",
        certification_tier="VERIFIED" if passed else "",
        tainted=suspicious,
    )


def said_of(version: SkillVersion) -> Dialects:
    """Return what each dialect says about a published version."""
    return dialects(verdict_of(version), flag_reason=version.flag_reason)


def said_of_skill(skill: SkillEntry) -> Dialects:
    """Return what each dialect says about a skill, by the columns that it has from its latest version."""
    return dialects(skill.verdict, skill.standing, flag_reason=skill.flag_reason)


def moderation(version: SkillVersion) -> dict[str, Any] | None:
    """Return clawhub's moderation object of a published version, ``None`` where it was not scanned."""
    said = said_of(version)
    if said.moderation is None:
        return None
    newest = newest_scan(version)
    return {
        "isSuspicious": said.suspicious,
        "isMalwareBlocked": False,
        "verdict": said.moderation,
        "reasonCodes": sorted({str(finding.get("ruleId", "")) for finding in newest.findings} - {""}),
        "summary": flagged(version.flag_reason) or version.verdict_summary or said.warning or None,
        "engineVersion": ", ".join(newest.named_engines) or None,
        "updatedAt": milliseconds(newest.scanned_at),
    }


def evidence(version: SkillVersion) -> list[dict[str, Any]]:
    """Return the findings of the newest scan of a version in clawhub's fields."""
    return evidence_of(newest_scan(version).findings)


def evidence_of(findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return ``findings`` as they are stored in clawhub's fields, all of which are required."""
    return [
        {
            "code": str(finding.get("ruleId", "")),
            "severity": _SEVERITIES.get(str(finding.get("severity", "")).lower(), "info"),
            "file": str(finding.get("file", "") or ""),
            "line": finding["line"] if isinstance(finding.get("line"), int) else 0,
            "message": str(finding.get("title", "") or finding.get("why", "") or ""),
            "evidence": str(finding.get("excerpt", "") or ""),
        }
        for finding in findings
    ]


def scan_fields(version: SkillVersion) -> dict[str, Any]:
    """Return what the newest scan of a version says; ``scannedAgain`` says that it is later than the publication."""
    newest = newest_scan(version)
    return {
        "scannedAt": milliseconds(newest.scanned_at),
        "scannedAgain": newest.again,
        "scanVerdict": newest.verdict,
        "engines": list(newest.engines),
        "findings": evidence(version),
    }


def milliseconds(moment: Any) -> int:
    """Return a time in clawhub's unit, milliseconds since 1970; 0 for ``None``."""
    return int(moment.timestamp() * 1000) if moment is not None else 0
