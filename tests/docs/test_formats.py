"""Each row of the table of formats is a test."""

from __future__ import annotations

import re

from tests.end_to_end.processes import ROOT

PAGE = ROOT / "docs" / "formats.md"
COLUMNS = 7


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_each_row_names_a_test_that_exists() -> None:
    assert len(rows()) >= 20
    for row in rows():
        named = re.findall(r"`(test_\w+)`", row[-1])
        assert named, row[0]
        source = (ROOT / "tests" / "submissions" / "test_formats.py").read_text(encoding="utf-8")
        missing = [name for name in named if not re.search(rf"^(async )?def {name}\(", source, re.MULTILINE)]
        assert missing == [], row[0]


def test_each_test_of_formats_is_named_by_a_row() -> None:
    source = (ROOT / "tests" / "submissions" / "test_formats.py").read_text(encoding="utf-8")
    tests = set(re.findall(r"^async def (test_\w+)\(", source, re.MULTILINE))
    named = {name for row in rows() for name in re.findall(r"`(test_\w+)`", row[-1])}
    assert tests - named == set()


def test_each_row_says_what_everybody_does() -> None:
    assert [row[0] for row in rows() if len(row) != COLUMNS or not all(row)] == []
