"""A comparison costs little, whatever it is given, and is computed once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping

import pytest

from marketplace.artifacts.diffs import MAX_FILES_COMPARED, TOO_LARGE, FileChange, compare
from marketplace.models import SkillVersion

# A version asks the database of its fields, although none is stored.
pytestmark = pytest.mark.database

Files = Mapping[str, str]


def version(files: Files) -> SkillVersion:
    """Return a version with these files, which is not stored."""
    manifest = [{"path": path, "sha256": hashlib.sha256(text.encode()).hexdigest()} for path, text in files.items()]
    made = SkillVersion()
    made.manifest = manifest
    return made


def compared(old: Files, new: Files) -> tuple[list[FileChange], int]:
    """Return the changes between two versions, and how many files were read for them."""
    before, after = version(old), version(new)
    read: list[str] = []

    def read_file(one: SkillVersion, path: str) -> bytes:
        read.append(path)
        return (old if one is before else new)[path].encode()

    return compare(before, after, read_file), len(read)


def woven(own: str, repeats: int, salt: str) -> str:
    """Return 2,000 lines of which every other one is also on the other side, the worst that difflib can be given."""
    shared = 1000 // repeats
    return "\n".join(f"{salt}{number % shared}\n{salt}{own}{number}" for number in range(1000))


def test_changes_are_shown_line_by_line() -> None:
    changes, _read = compared({"a": "one\ntwo\n", "gone": "x\n"}, {"a": "one\nthree\n", "new": "y\n"})
    assert [(one.path, one.status, one.additions, one.deletions) for one in changes] == [
        ("a", "modified", 1, 1),
        ("gone", "removed", 0, 1),
        ("new", "added", 1, 0),
    ]
    assert changes[0].patch == "@@ -1,2 +1,2 @@\n one\n-two\n+three"


@pytest.mark.parametrize("repeats", [1, 2, 5, 10, 20, 1000])
def test_hostile_files_cost_at_most_two_seconds_together(repeats: int) -> None:
    old = {f"f{number:02}": woven("a", repeats, f"{number}-") for number in range(MAX_FILES_COMPARED + 1)}
    new = {f"f{number:02}": woven("b", repeats, f"{number}-") for number in range(MAX_FILES_COMPARED + 1)}
    before = time.process_time()
    changes, _read = compared(old, new)
    assert time.process_time() - before < 2
    assert len(changes) == len(old)
    assert {one.status for one in changes} == {"modified"}
    assert changes[-1].patch == TOO_LARGE


@pytest.mark.parametrize("text", ["x" * 200_001, "x\n" * 2001, woven("a", 20, "")], ids=["bytes", "lines", "work"])
def test_a_file_beyond_a_limit_says_so(text: str) -> None:
    other = woven("b", 20, "") if text.count("\n") == 1999 else "short"
    [change], _read = compared({"a": text}, {"a": other})
    assert change == FileChange("a", "modified", None, None, TOO_LARGE)
    assert change.is_too_large


def test_a_binary_file_has_no_patch() -> None:
    [change], _read = compared({"a": "\0"}, {"a": "text"})
    assert change == FileChange("a", "modified", binary=True)


def test_a_line_ends_at_a_line_feed_alone_so_that_no_change_of_another_end_is_hidden() -> None:
    [change], _read = compared({"run.sh": "echo a\u2028rm b\r\n"}, {"run.sh": "echo a\nrm b\n"})
    assert change.patch == "@@ -1 +1,2 @@\n-echo a\u2028rm b\r\n+echo a\n+rm b"


def test_the_same_comparison_is_computed_once() -> None:
    old, new = {"a": "first of all\n"}, {"a": "second of all\n"}
    first, read = compared(old, new)
    again, read_again = compared(old, new)
    assert (again, read, read_again) == (first, 2, 0)
    assert compared(new, old)[1] == 2
