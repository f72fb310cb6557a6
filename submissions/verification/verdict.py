"""Turn findings into a verdict: pure functions, with the same result for the same input."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from marketplace.coverage import Coverage, add_up
from marketplace.pages.wording import capability_words
from marketplace.skills.capability_names import asked_names
from submissions.verification import structure
from submissions.verification.engines.base import EngineResult, EngineStatus, contract_in
from submissions.verification.findings import Finding, FindingKind, Severity, strongest_first

# Part of the key of a decision. Raise it with every change of the rules below.
_RULES = "6"
WAIVED: Final = "What would hold it was accepted by a reviewer; read the findings and the reasons."
NO_ENGINE: Final = "Not scanned: this registry runs no engine. Only its format was checked."


class Verdict(StrEnum):
    """What happens to a package.

    ``format``: its author must change something. ``refused``: its content is known to be bad. ``held_high``, ``held``
    and ``inconclusive`` (not scanned completely): a person must review it. ``notes`` and ``clear``: it may be
    published. ``unscanned``: it may be published, but no engine has read it, because the policy of the environment
    spares the skills of trusted owners. ``no_engine``: likewise, because the policy names no engine at all.
    """

    FORMAT = "format"
    REFUSED = "refused"
    HELD_HIGH = "held_high"
    HELD = "held"
    NOTES = "notes"
    CLEAR = "clear"
    INCONCLUSIVE = "inconclusive"
    UNSCANNED = "unscanned"
    NO_ENGINE = "no_engine"


@dataclass(frozen=True)
class VerdictPolicy:
    """What an environment requires of a package.

    ``engines`` are the names of the engines that must complete; otherwise the verdict is inconclusive. A risk or
    malicious finding of an engine from severity ``hold_from`` holds the package, even below the engine's own
    threshold. So does a finding of the pre-scan from severity ``hold_structure_from``. ``strong_findings`` different
    malicious indicators turn a hold into a high one.
    """

    engines: tuple[str, ...] = ("skilltotal",)
    strong_findings: int = 2
    hold_from: Severity = Severity.HIGH
    hold_structure_from: Severity = Severity.HIGH

    @property
    def policy_hash(self) -> str:
        """Return 16 hex digits that change with the policy, with these rules and with those of the pre-scan."""
        value = {"rules": _RULES, "structure": structure.VERSION, "policy": dataclasses.asdict(self)}
        return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Decision:
    """A verdict with its reasons; ``summary`` is one sentence for people, ``findings`` are most severe first."""

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
    inert: Collection[str] = (),
) -> Decision:
    """Decide what happens to a package.

    ``structure_findings`` are those of the pre-scan, ``results`` those of the engines that ran, in any order;
    ``policy`` says what they lead to. ``known_bad_hashes`` are content hashes that are refused: no static engine
    refuses by itself, it only holds the package for a person. ``content_hash`` is '' for a package with format
    problems. ``capabilities`` are those that the pre-scan found. ``inert`` are the files that hold data alone, which
    no engine need have read. A finding that is waived holds nothing, and an engine that blocks does so no more once all
    that it blocks for is waived; what is waived is a note of the decision.
    """
    results = sorted(results, key=lambda result: result.engine)
    findings = strongest_first([*structure_findings, *(f for result in results for f in result.findings)])
    known_bad = content_hash in known_bad_hashes
    verdict, summary, reasons = _weigh(structure_findings, results, policy, known_bad, capabilities, inert)
    return Decision(verdict, summary, tuple(reasons), findings, policy.policy_hash)


def _weigh(
    structure_findings: Sequence[Finding],
    results: Sequence[EngineResult],
    policy: VerdictPolicy,
    known_bad: bool,
    capabilities: Collection[str],
    inert: Collection[str],
) -> tuple[Verdict, str, list[str]]:
    if known_bad:
        return (
            Verdict.REFUSED,
            "Refused: this content is known to be malicious.",
            ["It is in the list of known bad content, by its hash or by its text without names and whitespace."],
        )
    stopping = [finding for finding in strongest_first(structure_findings) if finding.kind is FindingKind.FORMAT]
    if stopping:
        return Verdict.FORMAT, "Not checked: the format needs a change first.", [_sentence(f) for f in stopping]
    unfinished = _unfinished(results, policy, inert)
    blocking = [result for result in results if _blocks(result, policy)]
    holding = [reason for result in blocking for reason in _block_reasons(result)]
    from_pre_scan = _unwaived(
        finding
        for finding in strongest_first(structure_findings)
        if finding.severity.rank >= policy.hold_structure_from.rank
    )
    # An engine that blocks has given its reasons, which its strongest findings would repeat.
    from_engines = strongest_first(
        f for result in results if result not in blocking for f in _unwaived(_severe_findings(result, policy))
    )
    holding += [_sentence(finding) for finding in (*from_engines, *from_pre_scan)]
    if holding:
        if _holds_high(results, bool(from_pre_scan), policy):
            return Verdict.HELD_HIGH, "Held: several strong signs, a person must look at it.", holding + unfinished
        return Verdict.HELD, "Held: a person must look at it.", holding + unfinished
    if unfinished:
        return Verdict.INCONCLUSIVE, "Not scanned completely, so nothing can be said about it.", unfinished
    verdict, summary, reasons = _publishable(structure_findings, results, capabilities)
    if not policy.engines and not results:
        return Verdict.NO_ENGINE, NO_ENGINE, reasons
    return verdict, summary, reasons


def _unfinished(results: Sequence[EngineResult], policy: VerdictPolicy, inert: Collection[str]) -> list[str]:
    by_name = {result.engine: result for result in results}
    reasons: list[str] = []
    for name in policy.engines:
        result = by_name.get(name)
        if result is None:
            reasons.append(f"{name} was due and gave no result.")
        elif result.status not in (EngineStatus.COMPLETE, EngineStatus.PARTIAL):
            reasons.append(result.error or f"{name} did not complete ({result.status.value}).")
    return [*reasons, *_unread_by_all(results, inert)]


def _coverage(results: Sequence[EngineResult]) -> Coverage:
    notes = [one for result in results for one in result.findings if one.kind is FindingKind.COVERAGE]
    statuses = {result.engine: result.status.value for result in results}
    return add_up(statuses, ((one.engine, one.file, one.why) for one in notes))


def _unread_by_all(results: Sequence[EngineResult], inert: Collection[str]) -> list[str]:
    """Return a reason where a file that could run, or parts that nobody named, were read by no engine."""
    unread = [file or "parts that are not named" for file in _coverage(results).unread if file not in inert]
    rest = f" and {len(unread) - 3:,} more" if len(unread) > 3 else ""
    return [f"Read by no engine: {', '.join(unread[:3])}{rest}."] if unread else []


def holding_findings(
    structure_findings: Sequence[Finding], results: Sequence[EngineResult], policy: VerdictPolicy
) -> tuple[Finding, ...]:
    """Return the findings for which ``policy`` holds a package, the most severe first.

    ``structure_findings`` are those of the pre-scan, ``results`` those of the engines. An engine that blocks without a
    finding as severe does so for all that it accuses.
    """
    found = [one for one in structure_findings if one.severity.rank >= policy.hold_structure_from.rank]
    for result in results:
        found += _causes(result, policy)
    return strongest_first(_unwaived(found))


def _unwaived(findings: Iterable[Finding]) -> list[Finding]:
    return [one for one in findings if not one.waived]


def _causes(result: EngineResult, policy: VerdictPolicy) -> list[Finding]:
    """Return the findings for which an engine holds a package, waived or not."""
    severe = _severe_findings(result, policy)
    return severe or (_accusing(result) if result.blocked else [])


def _blocks(result: EngineResult, policy: VerdictPolicy) -> bool:
    causes = _causes(result, policy)
    return result.blocked and (not causes or bool(_unwaived(causes)))


def _accusing(result: EngineResult) -> list[Finding]:
    return [one for one in result.findings if one.kind in (FindingKind.RISK, FindingKind.MALICIOUS)]


def _block_reasons(result: EngineResult) -> list[str]:
    return [f"{result.engine}: {reason}" for reason in result.reasons] or [f"{result.engine} would block it."]


def _severe_findings(result: EngineResult, policy: VerdictPolicy) -> list[Finding]:
    return [finding for finding in _accusing(result) if finding.severity.rank >= policy.hold_from.rank]


def _holds_high(results: Sequence[EngineResult], pre_scan_holds: bool, policy: VerdictPolicy) -> bool:
    """Tell whether a hold is a high one: independent signs agree, or one finding is critical."""
    accusing = [result for result in results if _blocks(result, policy) or _unwaived(_severe_findings(result, policy))]
    signs = [finding for result in accusing for finding in _unwaived(result.findings)]
    malicious = {(finding.engine, finding.rule_id) for finding in signs if finding.kind is FindingKind.MALICIOUS}
    critical = any(finding.severity is Severity.CRITICAL for finding in signs)
    return len(malicious) >= policy.strong_findings or critical or len(accusing) + pre_scan_holds >= 2


def _publishable(
    structure_findings: Sequence[Finding], results: Sequence[EngineResult], pre_scan_capabilities: Collection[str]
) -> tuple[Verdict, str, list[str]]:
    findings = [finding for finding in structure_findings if finding.severity is not Severity.INFO]
    noted = set()
    unread = _coverage(results).unread
    for finding in (finding for result in results for finding in result.findings):
        if finding.kind is FindingKind.COVERAGE:
            # Each engine has a note about a file that none has read.
            if finding.file not in unread or finding.file in noted:
                continue
            noted.add(finding.file)
        findings.append(finding)
    capabilities = sorted({*pre_scan_capabilities, *(name for result in results for name in result.capabilities)})
    if not findings and not capabilities:
        return Verdict.CLEAR, "No known pattern found.", []
    reasons = [_sentence(finding) for finding in strongest_first(findings)]
    asked = asked_names(capabilities, contract_in(results))
    reasons += [f"Asks for: {capability_words(name).label}." for name in asked]
    if any(finding.waived for finding in findings):
        return Verdict.NOTES, WAIVED, reasons
    if any(finding.kind is not FindingKind.LINT for finding in findings):
        return Verdict.NOTES, "No known pattern that would hold it; there are notes to read.", reasons
    return Verdict.NOTES, "No known malicious pattern found; there are notes to read.", reasons


def _sentence(finding: Finding) -> str:
    where = f" ({finding.file}{f':{finding.line}' if finding.line else ''})" if finding.file else ""
    return f"{finding.title}{where}.{f' {finding.waived}' if finding.waived else ''}"
