"""The page about the states says what the table of states says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError

from submissions.states import STATES, State, check_transition
from tests.submissions.commands.run import help_of, run


def test_the_page_in_docs_is_current() -> None:
    assert run("state_diagram", "--check").code == 0


def test_the_diagram_has_each_step_once_and_marks_those_of_an_operator() -> None:
    steps = re.findall(r"^    ([A-Z]\w+) --> (\w+)( : operator)?$", run("state_diagram").out, re.MULTILINE)
    expected = [(state, following, "") for state in State for following in STATES[state].following]
    expected += [(state, following, " : operator") for state in State for following in STATES[state].by_operator]
    assert sorted(steps) == sorted(expected)
    for state, following, mark in steps:
        check_transition(State(state), State(following), by_operator=bool(mark))


def test_the_table_has_a_row_for_each_state() -> None:
    rows = [line.split(" | ") for line in run("state_diagram").out.splitlines() if line.startswith("| `")]
    assert [row[0].strip("| `") for row in rows] == list(State)
    assert [row[1] for row in rows] == [STATES[state].label for state in State]
    assert all(len(row) == 6 for row in rows)


def test_a_page_that_is_old_or_absent_is_told_and_left_as_it_is(tmp_path: Path, settings: Any) -> None:
    settings.BASE_DIR = tmp_path
    page = tmp_path / "docs" / "states.md"
    page.parent.mkdir()
    with pytest.raises(CommandError, match=r"not current.*state_diagram --write"):
        run("state_diagram", "--check")
    assert not page.exists()
    page.write_text("old")
    with pytest.raises(CommandError, match="not current"):
        run("state_diagram", "--check")
    assert page.read_text() == "old"


def test_writing_makes_the_page_current(tmp_path: Path, settings: Any) -> None:
    settings.BASE_DIR = tmp_path
    (tmp_path / "docs").mkdir()
    assert str(tmp_path) in run("state_diagram", "--write").out
    assert run("state_diagram", "--check").code == 0
    assert (tmp_path / "docs" / "states.md").read_text() == run("state_diagram").out


def test_its_help_says_when_it_fails() -> None:
    assert "Exit code 1 with --check" in help_of("state_diagram")
