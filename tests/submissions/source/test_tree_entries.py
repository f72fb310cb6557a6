"""Names of files that are valid on every system, and names that collide on some."""

from __future__ import annotations

import pytest

from marketplace.artifacts.archives import Member, build_tar_gz, build_zip, read_member
from submissions.source.tree_entries import collisions, odd_name, unusual_name


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
        "a\u00a0",
        "\u202fa",
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
        "e\u0301",
        "Screenshot 3.05.04\u202fAM.png",
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
    assert collisions(paths) == tuple(pairs)
    assert collisions(reversed(paths)) == tuple(pairs)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("a/3.05\u202fAM.png", "U+202F, narrow no-break space"),
        ("a\u00a0b", "U+00A0, no-break space"),
        ("a\u3000b", "U+3000, ideographic space"),
        ("e\u0301.md", "not in Unicode normal form C"),
    ],
)
def test_an_unusual_name_is_described_by_its_character(path: str, words: str) -> None:
    assert words in (unusual_name(path) or "")


@pytest.mark.parametrize("path", ["a b", "\u00e9", "\u4f60\u597d.md"])
def test_a_usual_name_is_not(path: str) -> None:
    assert unusual_name(path) is None


def test_a_hidden_character_is_named() -> None:
    assert odd_name("a\u202eb") == "the name has control or invisible characters, such as U+202E"
