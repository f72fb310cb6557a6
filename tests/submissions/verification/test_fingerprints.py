"""Fingerprints of findings: what they stay equal through, and what makes them others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from submissions.verification.engines.base import EngineResult, EngineStatus
from submissions.verification.findings import MAX_EXCERPT, Finding, FindingKind, Severity
from submissions.verification.fingerprints import FileContent, WaiverScope, contents_of, fingerprint, waived
from submissions.verification.package_contents import PackageFile
from submissions.verification.packages import SkillPackage
from submissions.verification.verdict import Verdict, VerdictPolicy, decide, holding_findings

TEXT = "".join(f"line {number}\n" for number in range(1, 40))
FOUND = Finding("a-rule", Severity.HIGH, "Does it", "run.sh", 20, engine="vskill", kind=FindingKind.RISK)


def made(finding: Finding, scope: WaiverScope, text: str | None = TEXT, sha256: str = "a" * 64) -> str | None:
    return fingerprint(finding, scope, FileContent(sha256, lambda: text))


@pytest.mark.parametrize("scope", WaiverScope)
@pytest.mark.parametrize(
    "changed",
    [
        {"rule_id": "b-rule"},
        {"engine": "skilltotal"},
        {"file": "other.sh"},
        {"title": "Does something else"},
        {"line": 21},
    ],
)
def test_another_finding_has_another_fingerprint(scope: WaiverScope, changed: dict[str, object]) -> None:
    assert made(replace(FOUND, **changed), scope) != made(FOUND, scope)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", range(13, 28))
def test_every_line_around_a_finding_counts_to_its_last_letter(number: int) -> None:
    long = TEXT.replace(f"line {number}\n", f"line {number} {'x' * MAX_EXCERPT}a\n")
    changed = TEXT.replace(f"line {number}\n", f"line {number} {'x' * MAX_EXCERPT}b\n")
    assert made(FOUND, WaiverScope.PASSAGE, long) != made(FOUND, WaiverScope.PASSAGE, changed)


def test_a_passage_may_move_and_have_other_ends_of_lines() -> None:
    moved = "new\n" * 5 + TEXT
    assert made(replace(FOUND, line=25), WaiverScope.PASSAGE, moved) == made(FOUND, WaiverScope.PASSAGE)
    assert made(FOUND, WaiverScope.PASSAGE, TEXT.replace("\n", "\r\n")) == made(FOUND, WaiverScope.PASSAGE)


def test_a_file_is_known_by_its_bytes_alone() -> None:
    assert made(FOUND, WaiverScope.FILE, None) == made(FOUND, WaiverScope.FILE)
    assert made(FOUND, WaiverScope.FILE, sha256="b" * 64) != made(FOUND, WaiverScope.FILE)


@pytest.mark.parametrize("scope", WaiverScope)
@pytest.mark.parametrize(
    "changed", [{"kind": FindingKind.FORMAT}, {"kind": FindingKind.COVERAGE}, {"kind": FindingKind.LINT}, {"file": ""}]
)
def test_format_what_is_unread_and_the_whole_package_are_never_waived(
    scope: WaiverScope, changed: dict[str, object]
) -> None:
    assert made(replace(FOUND, **changed), scope) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "line"), [(None, 20), (TEXT, None), (TEXT, 0), (TEXT, 500)])
def test_without_its_lines_there_is_no_passage(text: str | None, line: int | None) -> None:
    assert made(replace(FOUND, line=line), WaiverScope.PASSAGE, text) is None


def test_a_finding_in_a_file_that_is_no_longer_there_loses_its_waiver() -> None:
    stale = replace(FOUND, waived="Accepted earlier")
    assert waived([stale], {}, {str(made(FOUND, WaiverScope.FILE)): "Accepted"}) == (FOUND,)


def test_two_files_with_one_visible_name_have_no_fingerprints(tmp_path: Path) -> None:
    files = [PackageFile(path, 1, "a" * 64, False) for path in ("a\u200b.sh", "a\\u{200b}.sh", "b.sh")]
    package = SkillPackage(tmp_path, tuple(files), "c" * 64, "a", "Does it.", "", "", {}, "", "")
    assert list(contents_of(package)) == ["b.sh"]


def result(*findings: Finding, blocked: bool = False) -> EngineResult:
    return EngineResult("vskill", "1", EngineStatus.COMPLETE, findings, blocked=blocked, reasons=("bad",))


ACCEPTED = replace(FOUND, waived="Accepted by a reviewer until 2027-01-01: harmless")
OTHER = replace(FOUND, rule_id="b-rule", line=5)


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (result(ACCEPTED), Verdict.NOTES),
        (result(ACCEPTED, blocked=True), Verdict.NOTES),
        (result(ACCEPTED, OTHER), Verdict.HELD),
        (result(ACCEPTED, OTHER, blocked=True), Verdict.HELD),
        (result(replace(ACCEPTED, severity=Severity.CRITICAL), OTHER), Verdict.HELD),
        (result(blocked=True), Verdict.HELD),
        (result(replace(ACCEPTED, severity=Severity.LOW), replace(OTHER, severity=Severity.LOW)), Verdict.NOTES),
        (result(replace(ACCEPTED, severity=Severity.LOW), replace(OTHER, severity=Severity.LOW), blocked=True), "held"),
    ],
)
def test_what_is_waived_holds_nothing_and_what_is_not_still_does(found: EngineResult, verdict: Verdict) -> None:
    decision = decide([], [found], VerdictPolicy(("vskill",)))
    assert decision.verdict == verdict
    holding = holding_findings([], [found], VerdictPolicy(("vskill",)))
    assert all(not one.waived for one in holding)
    assert ACCEPTED not in holding
    if ACCEPTED in found.findings:
        assert ACCEPTED in decision.findings
    if decision.verdict is Verdict.NOTES and ACCEPTED in found.findings:
        assert any("Accepted by a reviewer until 2027-01-01: harmless" in one for one in decision.reasons)


def test_the_pre_scan_and_failed_engines_are_judged_as_before() -> None:
    structure = replace(FOUND, engine="structure")
    policy = VerdictPolicy(("vskill",))
    assert decide([structure], [result()], policy).verdict is Verdict.HELD
    assert decide([replace(structure, waived="Accepted")], [result()], policy).verdict is Verdict.NOTES
    failed = EngineResult("vskill", "1", EngineStatus.FAILED, error="It failed.")
    assert decide([replace(structure, waived="Accepted")], [failed], policy).verdict is Verdict.INCONCLUSIVE
    unread = replace(FOUND, kind=FindingKind.COVERAGE, waived="Accepted")
    assert decide([], [result(unread)], policy).verdict is Verdict.INCONCLUSIVE


def test_a_finding_keeps_its_waiver_when_stored() -> None:
    assert Finding.from_json(ACCEPTED.as_json()) == ACCEPTED
    assert "waived" not in FOUND.as_json()
