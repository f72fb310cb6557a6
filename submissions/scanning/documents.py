"""A scan as one JSON document; docs/scanning.md describes its fields, which are only added to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from submissions.scanning.outcomes import EXIT_CODES, gravest
from submissions.scanning.scan import ScannedSkill

FORMAT: Final = 1


def as_document(skills: Sequence[ScannedSkill]) -> dict[str, Any]:
    """Return plain values for ``json.dumps``; the same skills, engines and rules give the same document."""
    verdict = gravest(skill.decision.verdict for skill in skills)
    return {
        "format": FORMAT,
        "verdict": verdict.value,
        "exitCode": EXIT_CODES[verdict],
        "skills": [_skill(skill) for skill in skills],
    }


def _skill(skill: ScannedSkill) -> dict[str, Any]:
    decision = skill.decision
    unread = set(skill.not_looked_at)
    return {
        "path": skill.path or ".",
        "name": skill.name,
        "verdict": decision.verdict.value,
        "summary": decision.summary,
        "reasons": list(decision.reasons),
        "contentHash": skill.content_hash,
        "policyHash": decision.policy_hash,
        "asksFor": list(skill.asks_for.names),
        "leftUnread": skill.asks_for.unread,
        "capabilities": skill.called,
        "findings": [finding.as_json() for finding in decision.findings if finding not in unread],
        "notLookedAt": [
            {
                "engine": finding.engine,
                "file": finding.file,
                "line": finding.line,
                "what": finding.title,
                "why": finding.why,
            }
            for finding in skill.not_looked_at
        ],
        "engines": [
            {
                "name": result.engine,
                "version": result.engine_version,
                "adapter": result.adapter,
                "status": result.status.value,
                "blocked": result.blocked,
                "error": result.error,
            }
            for result in sorted(skill.results, key=lambda result: result.engine)
        ],
    }
