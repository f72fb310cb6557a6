"""Names of files that are valid on every system, and names that collide on some."""

from __future__ import annotations

import pytest

from marketplace.artifacts.archives import Member, build_tar_gz, build_zip, read_member
from submissions.source.tree_entries import TreeEntry, collisions, odd_name


def entry(path: str) -> TreeEntry:
    return TreeEntry(path, "100644", 10, "0" * 40)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a//b",
        "../a",
        "a/..",
        "./a",
        ".git/config",
        "sub/.GIT/config",
        "a\x00b",
        "a\x7fb",
        "a\nb",
        "a\u200bb",
        "a\u2028b",
        "a\u00a0b",
        "a\\b",
        "a:b",
        'a"b',
        "a?",
        "a ",
        " a",
        "a.",
        "a./b",
        "CON",
        "aux.txt",
        "lpt1.tar.gz",
        "e\u0301",
        "\udcff",
        "x/" * 16 + "x",
        "x" * 101,
        "x" * 256,
        "f" * 156 + "/x",
        "folder/" + "x" * 101,
        "\u4f60" * 86,
    ],
)
def test_names_that_are_not_good_everywhere(path: str) -> None:
    assert odd_name(path)


@pytest.mark.parametrize(
    "path",
    [
        "a",
        ".gitignore",
        ".github/x",
        "con-fig",
        "x/" * 15 + "x",
        "x" * 100,
        "f" * 154 + "/" + "x" * 100,
        "a b",
        "\u00e9",
    ],
)
def test_names_that_are_good_everywhere(path: str) -> None:
    assert odd_name(path) is None
    # Whatever is good here can be put into the archives that clients read.
    members = [Member("SKILL.md", b"skill"), Member(path, b"content")]
    assert read_member(build_zip(members).content, path) == b"content"
    assert build_tar_gz(members).content


@pytest.mark.parametrize(
    ("paths", "pairs"),
    [
        (["a", "b"], []),
        (["a", "A"], [("A", "a")]),
        (["x/a", "X/b"], [("X", "x")]),
        (["x/y/a", "x/Y/b"], [("x/Y", "x/y")]),
        (["stra\u00dfe", "STRASSE"], [("STRASSE", "stra\u00dfe")]),
        (["\u00e9", "e\u0301"], [("e\u0301", "\u00e9")]),
        (["a", "a"], [("a", "a")]),
        (["a", "a/b"], [("a", "a")]),
        (["A", "a/b"], [("a", "A")]),
    ],
)
def test_names_that_one_file_system_takes_for_the_same(paths: list[str], pairs: list[tuple[str, str]]) -> None:
    assert collisions(map(entry, paths)) == tuple(pairs)
    assert collisions(map(entry, reversed(paths))) == tuple(pairs)
