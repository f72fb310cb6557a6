"""Every rule finds what it is about, and not the most similar honest skill."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from submissions.verification.engine.judging import judge
from submissions.verification.engine.rules import RULES
from submissions.verification.findings import FindingKind, Severity
from tests.submissions.verification.engine.office_files import office_file

FIXTURES: dict[str, dict[str, dict[str, str | dict[str, str]]]] = tomllib.loads(
    Path(__file__).with_name("fixtures.toml").read_text(encoding="utf-8")
)
HEAD = "---\nname: helper\ndescription: Helps with small tasks.\n---\n\n"


def found(tmp_path: Path, files: Mapping[str, str | dict[str, str]]) -> dict[str, Severity]:
    """Write a skill and return the highest severity of each rule that it breaks; members make an office document."""
    for name, content in {"SKILL.md": "# Helper\n", **files}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            path.write_bytes(office_file(content))
            continue
        if content.startswith("hex:"):
            path.write_bytes(bytes.fromhex(content.removeprefix("hex:")))
            continue
        path.write_text(HEAD + content.lstrip("\n") if name == "SKILL.md" else content.lstrip("\n"), encoding="utf-8")
    worst: dict[str, Severity] = {}
    for sign, severity in judge(tmp_path).findings:
        worst[sign.name] = max(worst.get(sign.name, Severity.INFO), Severity(severity), key=lambda one: one.rank)
    return worst


def test_every_rule_has_both_fixtures_and_no_fixture_is_left_over() -> None:
    assert set(FIXTURES) == set(RULES)
    assert all(set(pair) == {"bad", "good"} for pair in FIXTURES.values())


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_finds_what_it_is_about(name: str, tmp_path: Path) -> None:
    assert found(tmp_path, FIXTURES[name]["bad"]).get(name) == Severity(RULES[name].severity)


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_spares_what_is_honest(name: str, tmp_path: Path) -> None:
    worst = found(tmp_path, FIXTURES[name]["good"])
    assert worst.get(name, Severity.INFO).rank < Severity(RULES[name].severity).rank
    assert [one for one, severity in worst.items() if severity.rank >= Severity.HIGH.rank] == []


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_says_what_it_means_and_what_to_do(name: str) -> None:
    rule = RULES[name]
    assert Severity(rule.severity).rank >= Severity.LOW.rank
    assert FindingKind(rule.kind) in {FindingKind.RISK, FindingKind.MALICIOUS}
    assert not rule.title.endswith(".")
    assert rule.why.endswith(".")
    assert rule.advice.endswith(".")
