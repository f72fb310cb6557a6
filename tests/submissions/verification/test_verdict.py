"""Verdicts: what each kind of finding leads to."""

from __future__ import annotations

import itertools

import pytest

from submissions.verification.engines.base import EngineResult, EngineStatus
from submissions.verification.findings import Finding, FindingKind, Severity
from submissions.verification.verdict import Verdict, VerdictPolicy, decide

POLICY = VerdictPolicy()


def finding(
    rule_id: str = "R1",
    severity: Severity = Severity.HIGH,
    kind: FindingKind = FindingKind.MALICIOUS,
    engine: str = "skilltotal",
    file: str = "a.py",
) -> Finding:
    return Finding(rule_id, severity, f"Title of {rule_id}", file=file, line=3, kind=kind, engine=engine)


def result(
    *findings: Finding,
    blocked: bool = False,
    status: EngineStatus = EngineStatus.COMPLETE,
    engine: str = "skilltotal",
    capabilities: tuple[str, ...] = (),
) -> EngineResult:
    error = "" if status is EngineStatus.COMPLETE else f"{engine} did not finish within 90 seconds."
    return EngineResult(engine, "1", status, findings, capabilities, blocked, ("its reason",) if blocked else (), error)


COMPILED = finding("structure.compiled", kind=FindingKind.RISK, engine="structure")
TOO_LARGE = finding("format.too-large", Severity.MEDIUM, FindingKind.FORMAT, "structure")
LINT = finding("lint.unknown-field", Severity.LOW, FindingKind.LINT, "structure")
CHINESE = finding("lint.name-ascii", Severity.INFO, FindingKind.LINT, "structure")
SECRET = finding("ST-SECRET", Severity.HIGH, FindingKind.EXPOSURE)
GRAVE = finding("ST-GRAVE", Severity.HIGH, FindingKind.RISK)
RISKY = finding("ST-RISK", Severity.MEDIUM, FindingKind.RISK)


@pytest.mark.parametrize(
    ("structure", "results", "verdict"),
    [
        pytest.param([], [result()], Verdict.CLEAR, id="nothing found"),
        pytest.param([CHINESE], [result()], Verdict.CLEAR, id="a remark only"),
        pytest.param([LINT], [result()], Verdict.NOTES, id="a departure from the specification"),
        pytest.param([], [result(RISKY)], Verdict.NOTES, id="a medium finding below the engine's threshold"),
        pytest.param([], [result(SECRET)], Verdict.NOTES, id="a leaked secret"),
        pytest.param([], [result(capabilities=("shell_execution",))], Verdict.NOTES, id="capabilities"),
        pytest.param([], [result(finding(), blocked=True)], Verdict.HELD, id="one malicious indicator"),
        pytest.param([], [result(RISKY, blocked=True)], Verdict.HELD, id="the engine's own threshold"),
        pytest.param([], [result(GRAVE)], Verdict.HELD, id="a high risk below the engine's threshold"),
        pytest.param(
            [], [result(GRAVE), result(GRAVE, engine="other")], Verdict.HELD_HIGH, id="two engines see a high risk"
        ),
        pytest.param([COMPILED], [result()], Verdict.HELD, id="compiled code"),
        pytest.param(
            [], [result(finding(), finding(file="b.py"), blocked=True)], Verdict.HELD, id="one indicator in two places"
        ),
        pytest.param(
            [], [result(finding(), finding("R2"), blocked=True)], Verdict.HELD_HIGH, id="two different indicators"
        ),
        pytest.param(
            [],
            [result(finding(severity=Severity.CRITICAL), blocked=True)],
            Verdict.HELD_HIGH,
            id="a critical indicator",
        ),
        pytest.param([COMPILED], [result(finding(), blocked=True)], Verdict.HELD_HIGH, id="pre-scan and engine agree"),
        pytest.param(
            [],
            [result(RISKY, blocked=True), result(RISKY, blocked=True, engine="other")],
            Verdict.HELD_HIGH,
            id="two engines agree",
        ),
        pytest.param([TOO_LARGE], [], Verdict.FORMAT, id="format, so no engine ran"),
        pytest.param([TOO_LARGE, COMPILED], [result(finding(), blocked=True)], Verdict.FORMAT, id="format comes first"),
        pytest.param([], [], Verdict.INCONCLUSIVE, id="no engine ran"),
        pytest.param([], [result(engine="other")], Verdict.INCONCLUSIVE, id="another engine ran"),
        pytest.param([], [result(status=EngineStatus.FAILED)], Verdict.INCONCLUSIVE, id="the engine failed"),
        pytest.param([], [result(status=EngineStatus.TIMED_OUT)], Verdict.INCONCLUSIVE, id="the engine was stopped"),
        pytest.param([], [result(status=EngineStatus.PARTIAL)], Verdict.INCONCLUSIVE, id="a part was not read"),
        pytest.param([LINT], [result(RISKY, status=EngineStatus.PARTIAL)], Verdict.INCONCLUSIVE, id="never a pass"),
        pytest.param(
            [],
            [result(finding(), blocked=True, status=EngineStatus.PARTIAL)],
            Verdict.HELD,
            id="what was found in the part that was read holds",
        ),
    ],
)
def test_the_table_of_verdicts(structure: list[Finding], results: list[EngineResult], verdict: Verdict) -> None:
    decision = decide(structure, results, POLICY, set(), content_hash="abc")
    assert decision.verdict is verdict
    assert bool(decision.reasons) is (verdict is not Verdict.CLEAR)
    assert set(decision.findings) == {*structure, *(f for r in results for f in r.findings)}


@pytest.mark.parametrize(
    ("unread", "verdict"),
    [
        (["model.onnx"], Verdict.NOTES),
        (["model.onnx", "table.csv"], Verdict.NOTES),
        (["model.onnx", "a.lua"], Verdict.INCONCLUSIVE),
        (["a.lua"], Verdict.INCONCLUSIVE),
        ([""], Verdict.INCONCLUSIVE),
        ([], Verdict.INCONCLUSIVE),
    ],
)
def test_an_engine_need_not_have_read_what_cannot_run(unread: list[str], verdict: Verdict) -> None:
    notes = [finding("coverage", Severity.INFO, FindingKind.COVERAGE, file=file) for file in unread]
    partial = result(*notes, status=EngineStatus.PARTIAL)
    assert decide([], [partial], POLICY, inert={"model.onnx", "table.csv"}).verdict is verdict
    failed = result(*notes, status=EngineStatus.FAILED)
    assert decide([], [failed], POLICY, inert={"model.onnx", "table.csv"}).verdict is Verdict.INCONCLUSIVE


OTHERS = VerdictPolicy(engines=("skilltotal", "vskill"))


@pytest.mark.parametrize(
    ("first", "second", "verdict", "reason"),
    [
        (["a.cs"], [], Verdict.CLEAR, ""),
        (["a.cs"], ["b.go"], Verdict.CLEAR, ""),
        (["a.cs", "b.go"], ["b.go"], Verdict.INCONCLUSIVE, "Read by no engine: b.go."),
        (["a", "b", "c", "d"], ["a", "b", "c", "d"], Verdict.INCONCLUSIVE, "Read by no engine: a, b, c and 1 more."),
        # A part that is not named may be in any file.
        ([""], ["b.go"], Verdict.INCONCLUSIVE, "Read by no engine: b.go."),
        ([""], [], Verdict.CLEAR, ""),
        ([""], [""], Verdict.INCONCLUSIVE, "Read by no engine: parts that are not named."),
    ],
)
def test_what_one_engine_left_unread_another_may_have_read(
    first: list[str], second: list[str], verdict: Verdict, reason: str
) -> None:
    results = [
        result(
            *(finding("coverage", Severity.INFO, FindingKind.COVERAGE, file=file, engine=name) for file in unread),
            engine=name,
            status=EngineStatus.PARTIAL if unread else EngineStatus.COMPLETE,
        )
        for name, unread in (("skilltotal", first), ("vskill", second))
    ]
    decision = decide([], results, OTHERS)
    assert (decision.verdict, decision.reasons) == (verdict, (reason,) if reason else ())


def test_a_file_that_no_engine_read_is_noted_once() -> None:
    results = [
        result(
            finding("coverage", Severity.INFO, FindingKind.COVERAGE, file="a.pdf", engine=name),
            engine=name,
            status=EngineStatus.PARTIAL,
        )
        for name in ("skilltotal", "vskill")
    ]
    decision = decide([], results, OTHERS, inert={"a.pdf"})
    assert (decision.verdict, decision.reasons) == (Verdict.NOTES, ("Title of coverage (a.pdf:3).",))


def test_an_engine_that_failed_is_not_made_up_for_by_another() -> None:
    failed = result(engine="skilltotal", status=EngineStatus.FAILED)
    assert decide([], [failed, result(engine="vskill")], OTHERS).verdict is Verdict.INCONCLUSIVE


def test_what_our_own_look_at_the_files_shows_is_said_beside_the_engines() -> None:
    decision = decide([], [result(capabilities=("filesystem_read",))], POLICY, capabilities=("shell_execution",))
    assert (decision.verdict, decision.reasons) == (
        Verdict.NOTES,
        ("Asks for: Reads files.", "Asks for: Runs commands or code."),
    )


def test_known_bad_content_is_refused_whatever_the_engines_say() -> None:
    for results in ([result()], [], [result(status=EngineStatus.FAILED)]):
        assert decide([], results, POLICY, {"abc"}, content_hash="abc").verdict is Verdict.REFUSED
    assert decide([], [result()], POLICY, {"abc"}, content_hash="abd").verdict is Verdict.CLEAR


def test_engines_alone_never_refuse() -> None:
    worst = [
        result(*(finding(f"R{n}", Severity.CRITICAL) for n in range(9)), blocked=True, engine=name)
        for name in ("skilltotal", "other", "third")
    ]
    assert decide([COMPILED], worst, POLICY).verdict is Verdict.HELD_HIGH


def test_nothing_is_ever_called_safe() -> None:
    sentences = [
        decide(structure, results, POLICY).summary
        for structure in ([], [LINT], [COMPILED], [TOO_LARGE])
        for results in ([], [result()], [result(finding(), finding("R2"), blocked=True)])
    ]
    assert not any(
        word in sentence.lower() for sentence in sentences for word in ("safe", "secure", "trusted", "clean")
    )
    assert decide([], [result()], POLICY).summary == "No known pattern found."


def test_an_unfinished_engine_is_named_beside_what_holds() -> None:
    decision = decide([COMPILED], [result(status=EngineStatus.TIMED_OUT)], POLICY)
    assert decision.verdict is Verdict.HELD
    assert decision.reasons == (
        "Title of structure.compiled (a.py:3).",
        "skilltotal did not finish within 90 seconds.",
    )


def test_the_order_of_findings_and_results_changes_nothing() -> None:
    structure = [LINT, COMPILED, CHINESE]
    results = [result(finding(), RISKY, blocked=True), result(SECRET, engine="other", blocked=True)]
    expected = decide(structure, results, POLICY)
    for shuffled in itertools.permutations(structure):
        for ordered in itertools.permutations(results):
            assert decide(shuffled, ordered, POLICY) == expected
    assert [finding.severity.rank for finding in expected.findings] == sorted(
        (finding.severity.rank for finding in expected.findings), reverse=True
    )


def test_the_policy_hash_changes_with_the_policy_alone() -> None:
    assert VerdictPolicy().policy_hash == VerdictPolicy().policy_hash == decide([], [], POLICY).policy_hash
    assert len({VerdictPolicy().policy_hash, VerdictPolicy(engines=()).policy_hash}) == 2
    assert VerdictPolicy(strong_findings=3).policy_hash != VerdictPolicy().policy_hash
