"""Colours of code: by the name of the file, the same text, and never at the cost of a server that stands still."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from marketplace.syntax.child import pieces
from marketplace.syntax.colouring import LANGUAGES, LARGEST, Colouring, language_of

# One regular expression of a lexer reads this for longer than anybody waits.
HOSTILE = "\\" * 190_000


@pytest.fixture
def colouring() -> Iterator[Colouring]:
    made = Colouring(seconds=20)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("path", "text", "language"),
    [
        ("a/b/Run.PY", "", "python"),
        ("Makefile", "", "make"),
        ("docker/Dockerfile", "", "docker"),
        ("bin/tool", "#!/usr/bin/env python3.11\n", "python"),
        ("bin/tool", "#!/bin/sh -e\n", "bash"),
        ("bin/tool", "#!/opt/odd\n", ""),
        ("notes.txt", "import os\n", ""),
        ("py", "", ""),
    ],
)
def test_a_language_is_known_by_name_or_interpreter(path: str, text: str, language: str) -> None:
    assert language_of(path, text) == language


def test_parts_have_colours_and_together_are_the_lines(colouring: Colouring) -> None:
    text = 'import os  # 漢字 \ud800\r\n\n"""two\nlines"""\n'
    lines = colouring.lines("a.py", text)
    assert lines is not None
    assert ["".join(piece for piece, _ in line) for line in lines] == text.split("\n")
    assert lines[0][0] == ("import", "keyword")
    assert lines[2:4] == [[('"""two', "string")], [('lines"""', "string")]]


def test_every_language_that_is_named_has_a_lexer() -> None:
    for language in LANGUAGES:
        found = pieces(language, "a = 1\n")
        assert found is not None
        assert sum(length for length, _ in found) == len("a = 1\n"), language


def test_a_text_that_takes_too_long_is_shown_plain_and_the_next_has_colours() -> None:
    colouring = Colouring(seconds=0.01)
    assert colouring.lines("Makefile", HOSTILE) is None
    colouring._seconds = 20
    assert colouring.lines("Makefile", HOSTILE) is None, "it is not read again"
    assert colouring.lines("a.py", "import os") == [[("import", "keyword"), (" os", "")]]
    colouring.close()


def test_a_process_that_ends_by_itself_costs_the_colours_alone() -> None:
    colouring = Colouring(command=(sys.executable, "-c", ""))
    assert colouring.lines("a.py", "import os") is None
    assert colouring.lines("a.py", "import sys") is None
    colouring.close()


def test_a_long_text_and_an_unknown_one_begin_no_process() -> None:
    colouring = Colouring(command=("/nothing/there",))
    assert colouring.lines("a.py", "#" * (LARGEST + 1)) is None
    assert colouring.lines("a.txt", "import os") is None
