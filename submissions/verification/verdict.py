"""From findings to a verdict: a pure function, the same answer for the same input every time."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from submissions.verification import structure
from submissions.verification.engines.base import EngineResult, EngineStatus
from submissions.verification.findings import Finding, FindingKind, Severity, strongest_first

# Raise with every change of the rules below: decisions are keyed by it.
_RULES = "2"


class Verdict(StrEnum):
    """What happens to a package.

    ``format``: its author must change something, nobody is accused. ``refused``: known bad content. ``held_high`` and
    ``held``: a person must look. ``notes`` and ``clear``: it may be published. ``inconclusive``: not scanned.
    """

    FORMAT = "format"
    REFUSED = "refused"
    HELD_HIGH = "held_high"
    HELD = "held"
    NOTES = "notes"
    CLEAR = "clear"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class VerdictPolicy:
    """What an environment asks of a package.

    ``engines`` are the names that are due: one that did not complete makes the verdict inconclusive. ``hold_from`` is
    the severity from which a risk or a malicious sign that an engine found holds, below its own threshold too.
    ``strong_findings`` is how many different malicious indicators make a hold a high one. ``hold_structure_from`` is
    the severity from which a finding of our own pre-scan holds.
    """

    engines: tuple[str, ...] = ("skilltotal",)
    strong_findings: int = 2
    hold_from: Severity = Severity.HIGH
    hold_structure_from: Severity = Severity.HIGH

    @property
    def policy_hash(self) -> str:
        """Return 16 hex digits that change with the policy, with these rules and with the pre-scan's."""
        value = {"rules": _RULES, "structure": structure.VERSION, "policy": dataclasses.asdict(self)}
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Decision:
    """A verdict with its reasons; ``summary`` is one sentence for people, ``findings`` come strongest first."""

    verdict: Verdict
    summary: str
    reasons: tuple[str, ...]
    findings: tuple[Finding, ...]
    policy_hash: str


def decide(
    structure_findings: Sequence[Finding],
    results: Sequence[EngineResult],
    policy: VerdictPolicy,
    known_bad_hashes: Collection[str] = (),
    *,
    content_hash: str = "",
    capabilities: Collection[str] = (),
) -> Decision:
    """Weigh what the pre-scan and the engines found.

    No static engine refuses by itself: what it is sure of holds the package for a person, and only content whose
    hash is in ``known_bad_hashes`` is refused. ``content_hash`` may be empty for a package that has none, which is
    then a ``format`` one. ``capabilities`` are those that our own look at the files adds to the engines'.
    """
    results = sorted(results, key=lambda result: result.engine)
    findings = strongest_first([*structure_findings, *(f for result in results for f in result.findings)])
    known_bad = content_hash in known_bad_hashes
    verdict, summary, reasons = _weigh(structure_findings, results, policy, known_bad, capabilities)
    return Decision(verdict, summary, tuple(reasons), findings, policy.policy_hash)


def _weigh(
    structure_findings: Sequence[Finding],
    results: Sequence[EngineResult],
    policy: VerdictPolicy,
    known_bad: bool,
    capabilities: Collection[str],
) -> tuple[Verdict, str, list[str]]:
    if known_bad:
        return (
            Verdict.REFUSED,
            "Refused: this exact content is known to be malicious.",
            ["The content hash is in the list of known bad content."],
        )
    stopping = [finding for finding in strongest_first(structure_findings) if finding.kind is FindingKind.FORMAT]
    if stopping:
        return Verdict.FORMAT, "Not checked: the format needs a change first.", [_line(f) for f in stopping]
    unfinished = _unfinished(results, policy)
    holding = [reason for result in results if result.blocked for reason in _block_reasons(result)]
    grave = [
        finding
        for finding in strongest_first(structure_findings)
        if finding.severity.rank >= policy.hold_structure_from.rank
    ]
    # An engine that blocks has said why; its strongest findings are the same thing again.
    strong = strongest_first(f for result in results if not result.blocked for f in _strong_findings(result, policy))
    holding += [_line(finding) for finding in (*strong, *grave)]
    if holding:
        if _is_strong(results, bool(grave), policy):
            return Verdict.HELD_HIGH, "Held: several strong signs, a person must look at it.", holding + unfinished
        return Verdict.HELD, "Held: a person must look at it.", holding + unfinished
    if unfinished:
        return Verdict.INCONCLUSIVE, "Not scanned completely, so nothing can be said about it.", unfinished
    return _publishable(structure_findings, results, capabilities)


def _unfinished(results: Sequence[EngineResult], policy: VerdictPolicy) -> list[str]:
    by_name = {result.engine: result for result in results}
    reasons: list[str] = []
    for name in policy.engines:
        result = by_name.get(name)
        if result is None:
            reasons.append(f"{name} was due and gave no result.")
        elif result.status is not EngineStatus.COMPLETE:
            reasons.append(result.error or f"{name} did not complete ({result.status.value}).")
    return reasons


def _block_reasons(result: EngineResult) -> list[str]:
    return [f"{result.engine}: {reason}" for reason in result.reasons] or [f"{result.engine} would block it."]


def _strong_findings(result: EngineResult, policy: VerdictPolicy) -> list[Finding]:
    return [
        finding
        for finding in result.findings
        if finding.kind in (FindingKind.RISK, FindingKind.MALICIOUS) and finding.severity.rank >= policy.hold_from.rank
    ]


def _is_strong(results: Sequence[EngineResult], grave_structure: bool, policy: VerdictPolicy) -> bool:
    """Tell whether independent signs agree, which is worth more than how severe each of them is."""
    speaking = [result for result in results if result.blocked or _strong_findings(result, policy)]
    malicious = {
        (finding.engine, finding.rule_id)
        for result in speaking
        for finding in result.findings
        if finding.kind is FindingKind.MALICIOUS
    }
    critical = any(finding.severity is Severity.CRITICAL for result in speaking for finding in result.findings)
    return len(malicious) >= policy.strong_findings or critical or len(speaking) + grave_structure >= 2


def _publishable(
    structure_findings: Sequence[Finding], results: Sequence[EngineResult], shown: Collection[str]
) -> tuple[Verdict, str, list[str]]:
    said = [finding for finding in structure_findings if finding.severity is not Severity.INFO]
    said += [finding for result in results for finding in result.findings]
    capabilities = sorted({*shown, *(name for result in results for name in result.capabilities)})
    if not said and not capabilities:
        return Verdict.CLEAR, "No known pattern found.", []
    reasons = [_line(finding) for finding in strongest_first(said)]
    reasons += [f"It can: {name.replace('_', ' ')}." for name in capabilities]
    if any(finding.kind is not FindingKind.LINT for finding in said):
        return Verdict.NOTES, "No known pattern that would hold it; there are notes to read.", reasons
    return Verdict.NOTES, "No known malicious pattern found; there are notes to read.", reasons


def _line(finding: Finding) -> str:
    where = f" ({finding.file}{f':{finding.line}' if finding.line else ''})" if finding.file else ""
    return f"{finding.title}{where}."
