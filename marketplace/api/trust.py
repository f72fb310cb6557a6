"""Our verdicts in the terms of each public client; never better than the verdict itself."""

from __future__ import annotations

from typing import Any, Final

from marketplace.models import SkillVersion
from marketplace.records import Visibility

# vskill's tiers run from T0 (do not install) to T4. The top two stand for more than a static scan, so none gets them.
_TRUST_TIERS: Final = {"clear": "T2", "notes": "T1"}
_SEVERITIES: Final = {"critical": "critical", "high": "critical", "medium": "warn"}


def trust_tier(verdict: str, visibility: str) -> str:
    """Return the tier that vskill shows: T0 for a withheld skill, T1 for notes or no verdict, T2 for clear."""
    return _TRUST_TIERS.get(verdict, "T1") if visibility == Visibility.VISIBLE else "T0"


def certification_tier(verdict: str) -> str:
    """Return vskill's certification tier: ``VERIFIED`` where every check that was due has run, otherwise empty."""
    return "VERIFIED" if verdict in _TRUST_TIERS else ""


def moderation(version: SkillVersion) -> dict[str, Any]:
    """Return clawhub's moderation object of a published version; held and refused ones are never published."""
    engines = ", ".join(f"{engine.get('name', '')} {engine.get('version', '')}".strip() for engine in version.engines)
    return {
        "isSuspicious": False,
        "isMalwareBlocked": False,
        "verdict": "clean",
        "reasonCodes": sorted({str(finding.get("rule", "")) for finding in version.findings} - {""}),
        "summary": version.verdict_summary or None,
        "engineVersion": engines or None,
        "updatedAt": milliseconds(version.created_at),
    }


def evidence(version: SkillVersion) -> list[dict[str, Any]]:
    """Return the findings of a version in clawhub's fields, all of which are required."""
    return [
        {
            "code": str(finding.get("rule", "")),
            "severity": _SEVERITIES.get(str(finding.get("severity", "")).lower(), "info"),
            "file": str(finding.get("file", "") or ""),
            "line": finding["line"] if isinstance(finding.get("line"), int) else 0,
            "message": str(finding.get("title", "") or finding.get("why", "") or ""),
            "evidence": str(finding.get("excerpt", "") or ""),
        }
        for finding in version.findings
    ]


def milliseconds(moment: Any) -> int:
    """Return a time in clawhub's unit, milliseconds since 1970; 0 for ``None``."""
    return int(moment.timestamp() * 1000) if moment is not None else 0
