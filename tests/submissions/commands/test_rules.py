"""The page about the rules says what the engine reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError

from submissions.management.commands import rules as rules_command
from submissions.verification.engine import rules as rules_module
from submissions.verification.engine.rules import RULES
from tests.submissions.commands.run import run


def test_the_page_in_docs_is_current() -> None:
    assert run("rules", "--check").code == 0


def test_the_table_has_a_row_for_each_rule() -> None:
    rows = [line.split(" | ") for line in run("rules").out.splitlines() if line.startswith("| `")]
    assert {row[0].strip("| `") for row in rows} == set(RULES)
    assert all(len(row) == 6 for row in rows)


def test_a_page_that_is_old_is_told_and_written_on_demand(tmp_path: Path, settings: Any) -> None:
    settings.BASE_DIR = tmp_path
    page = tmp_path / "docs" / "rules.md"
    page.parent.mkdir()
    page.write_text("old")
    with pytest.raises(CommandError, match=r"not current.*rules --write"):
        run("rules", "--check")
    assert page.read_text() == "old"
    run("rules", "--write")
    assert run("rules", "--check").code == 0


@pytest.fixture
def own_files(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.BASE_DIR = tmp_path
    (tmp_path / "docs").mkdir()
    kept = tmp_path / "measured.json"
    kept.write_text("{}")
    for module in (rules_module, rules_command):
        monkeypatch.setattr(module, "MEASURED", kept)
    return tmp_path


def test_what_rules_held_is_taken_from_a_report_and_stands_in_the_table(own_files: Path) -> None:
    held = {"vskill/miner": {"malicious": 9, "benign": 1, "unlabelled": 3}, "skilltotal/X": {"malicious": 5}}
    samples = {"malicious": 20, "benign": 30, "unlabelled": 4}
    report = {
        "engines": [{"name": "vskill", "version": "8", "adapter": 1}, {"name": "skilltotal", "version": "1"}],
        "sections": [{"name": "all", "samples": samples, "rules": held}],
    }
    (own_files / "report.json").write_text(json.dumps(report))
    run("rules", "--measured", str(own_files / "report.json"))
    assert json.loads((own_files / "measured.json").read_text()) == {
        "version": "8",
        "samples": {"malicious": 20, "benign": 30},
        "rules": {"miner": {"malicious": 9, "benign": 1}},
    }
    page = (own_files / "docs" / "rules.md").read_text()
    [row] = [line for line in page.splitlines() if line.startswith("| `miner`")]
    assert row.endswith("| 9 of 10 [0.60-0.98] |")
    assert "with version 8 on 20 malicious and 30 honest skills" in page
    assert "| held none |" in page


@pytest.mark.parametrize("text", ["", "[]", '{"engines": []}', '{"engines": [{"name": "vskill", "version": "8"}]}'])
def test_a_document_of_another_kind_changes_nothing(own_files: Path, text: str) -> None:
    (own_files / "report.json").write_text(text)
    with pytest.raises(CommandError, match="Nothing was written"):
        run("rules", "--measured", str(own_files / "report.json"))
    assert (own_files / "measured.json").read_text() == "{}"
    assert not (own_files / "docs" / "rules.md").exists()


def test_what_is_kept_is_about_rules_that_exist() -> None:
    measured = rules_module.read_measured()
    assert set(measured["rules"]) <= set(RULES)
    assert measured["samples"]["malicious"] > 0
