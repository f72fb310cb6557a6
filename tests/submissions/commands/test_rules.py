"""The page about the rules says what the engine reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError

from submissions.verification.engine.rules import RULES
from tests.submissions.commands.run import run


def test_the_page_in_docs_is_current() -> None:
    assert run("rules", "--check").code == 0


def test_the_table_has_a_row_for_each_rule() -> None:
    rows = [line.split(" | ") for line in run("rules").out.splitlines() if line.startswith("| `")]
    assert {row[0].strip("| `") for row in rows} == set(RULES)
    assert all(len(row) == 5 for row in rows)


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
