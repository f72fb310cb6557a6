"""The adapter of skilltotal (PyPI, Apache-2.0): static rules over files, offline, without dependencies.

Its own block threshold flagged 0.6 % of 1,494 benign skills, so reaching it holds a submission.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from submissions.sandbox.child_processes import PreparedScript
from submissions.verification.engines.base import Engine, EngineResult, EngineStatus
from submissions.verification.errors import EngineUnavailable
from submissions.verification.findings import Finding, FindingKind, Severity, strongest_first
from vskill.hidden_characters import visible

MAX_FINDINGS = 300
_SCRIPT = Path(__file__).with_name("skilltotal_child.py")
_KINDS = {
    "malicious_indicator": FindingKind.MALICIOUS,
    "risky_construct": FindingKind.RISK,
    "exposure": FindingKind.EXPOSURE,
}
# It splits `allowed-tools` at commas, the specification at spaces. A valid `Bash WebFetch` is then one unknown tool,
# which deserves a note and not a hold.
_LOWERED_SEVERITIES = {"ST-SKILL-CAP-MISMATCH": Severity.MEDIUM}


class SkillTotal(Engine):
    """Run skilltotal, which takes about 0.1 s per skill."""

    name = "skilltotal"
    adapter = 4

    @property
    def version(self) -> str:
        """Return the installed version of the package."""
        try:
            return _installed_version()
        except metadata.PackageNotFoundError:
            raise EngineUnavailable("The engine skilltotal is not installed; install requirements.txt.") from None

    def command(self, tree: Path) -> PreparedScript:
        """Return the call of the child script, which imports nothing of this project."""
        return PreparedScript(_SCRIPT, (str(tree),))

    def parse(self, output: bytes) -> EngineResult:
        """Read skilltotal's report: one finding per place, and the status ``partial`` for unread files."""
        document = json.loads(output)
        try:
            report: Mapping[str, Any] = document["report"]
            findings = [finding for item in report["findings"] for finding in _findings_of(item)]
            unread = [_unread_finding(note) for note in document["unread"]]
            findings += [_set_aside_finding(note) for note in document["set_aside"]]
            capabilities = tuple(sorted(str(name) for name in report["capabilities"]))
            blocked = document["decision"] == "block"
            reasons = tuple(visible(str(reason), 300) for reason in document["reasons"])
            version = str(document["version"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a report of skilltotal: {error!r}") from error
        return EngineResult(
            engine=self.name,
            engine_version=version,
            status=EngineStatus.PARTIAL if unread else EngineStatus.COMPLETE,
            findings=(*strongest_first(findings)[:MAX_FINDINGS], *_bounded(unread)),
            capabilities=capabilities,
            blocked=blocked,
            reasons=reasons,
            error=f"skilltotal left parts of the skill unread: {unread[0].title}." if unread else "",
        )


@cache
def _installed_version() -> str:
    # The fork server has imported what was installed when it started, so this process stays with that as well.
    return metadata.version("skilltotal")


def _bounded(unread: Sequence[Finding]) -> Sequence[Finding]:
    """Return the notes about unread parts; those beyond what people read become one that names no file."""
    if len(unread) <= MAX_FINDINGS:
        return unread
    rest = replace(unread[0], title=f"{len(unread) - MAX_FINDINGS:,} more parts were not read", file="", line=None)
    return (*unread[:MAX_FINDINGS], rest)


def _findings_of(item: Mapping[str, Any]) -> list[Finding]:
    """Return one finding for each place that skilltotal names; a capability is no finding."""
    kind = _KINDS.get(item["threat_class"])
    if kind is None:
        return []
    return [
        Finding(
            rule_id=str(item["id"]),
            severity=_LOWERED_SEVERITIES.get(item["id"], Severity(item["severity"])),
            kind=kind,
            title=str(item["title"]),
            file=str(place["file"]),
            line=int(place["line_start"]),
            excerpt=str(place["snippet"]),
            why=str(item["description"]),
            advice=str(item["recommendation"]),
            engine=SkillTotal.name,
        )
        for place in item["evidence"]
    ]


def _unread_finding(note: Mapping[str, Any]) -> Finding:
    return Finding(
        rule_id="coverage",
        severity=Severity.INFO,
        kind=FindingKind.COVERAGE,
        title=str(note["title"]),
        # This note names the first of several files.
        file="" if note["title"] == "Files could not be read" else str(note["file"] or ""),
        line=note["line"] if isinstance(note["line"], int) else None,
        why=str(note["reason"]),
        advice="A person has to look at this part, because no engine did.",
        engine=SkillTotal.name,
    )


def _set_aside_finding(note: Mapping[str, Any]) -> Finding:
    """Return a risk found in documents, tests or examples: a note that does not hold the submission."""
    return Finding(
        rule_id="set-aside",
        severity=Severity.LOW,
        kind=FindingKind.RISK,
        title=str(note["title"]),
        file=str(note["file"] or ""),
        line=note["line"] if isinstance(note["line"], int) else None,
        why=str(note["reason"]),
        advice="Look whether the skill ever tells an agent to run or follow this.",
        engine=SkillTotal.name,
    )
