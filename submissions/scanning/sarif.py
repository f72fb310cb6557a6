"""A scan in the form that code hosts and editors read: SARIF 2.1.0 (OASIS)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote

from submissions.scanning.outcomes import EXIT_CODES, gravest
from submissions.scanning.scan import ScannedSkill
from submissions.verification.engines.base import EngineStatus
from submissions.verification.findings import Finding, FindingKind, Severity

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "note",
    Severity.INFO: "note",
}
# What code hosts sort by, from 0 to 10.
_SCORES: Final = {
    Severity.CRITICAL: "9.5",
    Severity.HIGH: "8.0",
    Severity.MEDIUM: "5.0",
    Severity.LOW: "2.0",
    Severity.INFO: "0.5",
}


def as_sarif(skills: Sequence[ScannedSkill], *, folder: str = "") -> dict[str, Any]:
    """Return a SARIF log with one run, whose places are relative to the folder that was scanned.

    ``folder`` goes before each path: where the scanned folder lies in the repository. What stops a skill for its format
    is an error, whatever its severity. What engines left unread is a notification.
    """
    verdict = gravest(skill.decision.verdict for skill in skills)
    found = [
        (skill, finding)
        for skill in skills
        for finding in skill.decision.findings
        if finding.kind is not FindingKind.COVERAGE
    ]
    rules = _rules(finding for _skill, finding in found)
    places = {rule["id"]: number for number, rule in enumerate(rules)}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "vskill",
                        "rules": rules,
                        "properties": {"engines": _engines(skills)},
                    }
                },
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": True,
                        "exitCode": EXIT_CODES[verdict],
                        "exitCodeDescription": verdict.value,
                        "toolExecutionNotifications": [
                            note for skill in skills for note in _notifications(skill, folder)
                        ],
                    }
                ],
                "results": [_result(skill, finding, folder, places) for skill, finding in found],
            }
        ],
    }


def _engines(skills: Iterable[ScannedSkill]) -> list[str]:
    return sorted({f"{result.engine} {result.engine_version}".strip() for skill in skills for result in skill.results})


def _rule_id(finding: Finding) -> str:
    return f"{finding.engine}/{finding.rule_id}"


def _rules(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return one description for each rule; its text is that of the first finding, as engines have none of a rule."""
    first: dict[str, Finding] = {}
    for finding in findings:
        first.setdefault(_rule_id(finding), finding)
    return [
        {
            "id": name,
            "shortDescription": {"text": finding.title or name},
            **({"fullDescription": {"text": finding.why}} if finding.why else {}),
            **({"help": {"text": finding.advice}} if finding.advice else {}),
            "properties": {"tags": ["security", finding.kind.value], "security-severity": _SCORES[finding.severity]},
        }
        for name, finding in sorted(first.items())
    ]


def _result(skill: ScannedSkill, finding: Finding, folder: str, places: dict[str, int]) -> dict[str, Any]:
    stops = finding.kind is FindingKind.FORMAT
    text = " ".join(part for part in (f"{finding.title}.", finding.why, finding.advice) if part)
    return {
        "ruleId": _rule_id(finding),
        "ruleIndex": places[_rule_id(finding)],
        "level": "error" if stops else _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [_location(skill, finding, folder)],
        "partialFingerprints": {"vskill/v1": _fingerprint(skill, finding)},
        "properties": {"severity": finding.severity.value, "kind": finding.kind.value, "skill": skill.name},
    }


def _location(skill: ScannedSkill, finding: Finding, folder: str) -> dict[str, Any]:
    # A finding about the whole skill is shown at its SKILL.md.
    path = "/".join(part.strip("/") for part in (folder, skill.path, finding.file or "SKILL.md") if part.strip("/"))
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(path)}}
    if finding.line or finding.excerpt:
        snippet = {"snippet": {"text": finding.excerpt}} if finding.excerpt else {}
        physical["region"] = {"startLine": max(1, finding.line or 1), **snippet}
    return {"physicalLocation": physical}


def _fingerprint(skill: ScannedSkill, finding: Finding) -> str:
    """Return what stays the same where a finding moves to another line."""
    parts = (skill.path, _rule_id(finding), finding.file, finding.excerpt or finding.title)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _notifications(skill: ScannedSkill, folder: str) -> Iterable[dict[str, Any]]:
    for finding in skill.not_looked_at:
        yield {
            "level": "warning",
            "message": {"text": f"{finding.engine} did not look at this: {finding.title}. {finding.why}".strip()},
            "locations": [_location(skill, finding, folder)],
        }
    for result in skill.results:
        if result.status in (EngineStatus.FAILED, EngineStatus.TIMED_OUT):
            yield {"level": "error", "message": {"text": f"{skill.path or '.'}: {result.error or result.status.value}"}}
