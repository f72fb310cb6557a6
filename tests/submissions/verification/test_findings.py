"""Findings: safe to show, unchanged by storage, most severe first."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from submissions.verification.findings import Finding, FindingKind, Severity, strongest_first
from vskill.hidden_characters import visible


def finding(**fields: object) -> Finding:
    values: dict[str, object] = {"rule_id": "r", "severity": Severity.LOW, "title": "A title", **fields}
    return Finding(**values)  # type: ignore[arg-type]  # a test may set any field


def test_what_deceives_an_eye_is_spelled_out() -> None:
    assert visible("a\x1b[31mb\u202ec\u200bd\U000e0041e\udcfff\xa0g\th") == (
        r"a\u{1b}[31mb\u{202e}c\u{200b}d\u{e0041}e\u{dcff}f\u{a0}g\u{9}h"
    )
    assert visible("\u4f60\u597d, \u00e9t\u00e9 \U0001f600 <b>") == "\u4f60\u597d, \u00e9t\u00e9 \U0001f600 <b>"


def test_long_texts_are_cut() -> None:
    assert visible("x" * 50, 20) == "x" * 18 + " \u2026"
    assert visible("x" * 20, 20) == "x" * 20
    assert len(finding(excerpt="\u202e" * 10_000).excerpt) == 240


@given(st.text(), st.integers(2, 60))
def test_showing_twice_is_showing_once(text: str, limit: int) -> None:
    once = visible(text, limit)
    assert visible(once, limit) == once
    assert len(once) <= limit
    once.encode("utf-8")


@given(st.text(), st.text(), st.sampled_from(Severity), st.sampled_from(FindingKind), st.none() | st.integers(1))
def test_a_finding_survives_storage(
    text: str, file: str, severity: Severity, kind: FindingKind, line: int | None
) -> None:
    original = finding(excerpt=text, title=text, file=file, severity=severity, kind=kind, line=line)
    stored = json.dumps(original.as_json())
    assert Finding.from_json(json.loads(stored)) == original


def test_the_strongest_come_first_whatever_the_order_of_arrival() -> None:
    ordered = [
        finding(severity=Severity.CRITICAL),
        finding(severity=Severity.HIGH, kind=FindingKind.MALICIOUS),
        finding(severity=Severity.HIGH),
        finding(severity=Severity.MEDIUM, file="a"),
        finding(severity=Severity.MEDIUM, file="b", line=2),
        finding(severity=Severity.MEDIUM, file="b", line=10),
        finding(severity=Severity.INFO),
    ]
    assert list(strongest_first([*reversed(ordered), *ordered])) == ordered
