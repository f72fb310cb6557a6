"""The pre-scan: what the list of files and their first bytes show."""

from __future__ import annotations

import pytest

from submissions.source.tree_entries import TreeEntry
from submissions.verification.findings import FindingKind
from submissions.verification.structure import PackageLimits, capabilities_of, check_entries, check_files

LIMITS = PackageLimits(files=30, total_bytes=1000, code_file_bytes=100)


def entry(path: str, mode: str = "100644", size: int | None = 10) -> TreeEntry:
    return TreeEntry(path, mode, size, "0" * 40)


def rules(*entries: TreeEntry) -> list[str]:
    return sorted({finding.rule_id for finding in check_entries(entries, LIMITS)})


def test_an_ordinary_package_has_no_findings() -> None:
    names = [
        "SKILL.md",
        "scripts/run.py",
        ".gitignore",
        "a b.txt",
        "LICENSE",
        "\u4f60\u597d.md",
        "refs/x (1).md",
        "a~1",
    ]
    assert rules(*map(entry, names), entry("run", "100755")) == []


@pytest.mark.parametrize(
    ("found", "rule"),
    [
        (entry("l", "120000"), "format.link"),
        (entry("s", "160000", None), "format.submodule"),
        (entry("d", "060000"), "format.file-type"),
        (entry("a.zip"), "format.nested-archive"),
        (entry("deep/x.TAR.GZ"), "format.nested-archive"),
        (entry("my.skill"), "format.nested-archive"),
        (entry("lib.whl"), "format.nested-archive"),
        (entry("big.py", size=101), "format.code-size"),
        (entry("Makefile", size=101), "format.code-size"),
        (entry("tool", "100755", 101), "format.code-size"),
        (entry("data.csv", size=1001), "format.too-large"),
        (entry(".."), "format.name"),
    ],
)
def test_what_stops_a_package(found: TreeEntry, rule: str) -> None:
    assert rules(entry("SKILL.md"), found) == [rule]


def test_limits_are_inclusive() -> None:
    assert rules(entry("a.py", size=100), entry("b.csv", size=900)) == []
    assert rules(*(entry(f"f{n}") for n in range(30))) == []
    assert rules(*(entry(f"f{n}") for n in range(31))) == ["format.too-many-files"]


def test_the_largest_file_is_named() -> None:
    findings = check_entries([entry("a", size=400), entry("b", size=601)], LIMITS)
    assert [(finding.file, finding.kind) for finding in findings] == [("b", FindingKind.FORMAT)]


def test_a_thousand_links_are_not_named_one_by_one() -> None:
    findings = check_entries([entry(f"l{n}", "120000") for n in range(1000)], LIMITS)
    assert 10 < len(findings) < 30


@pytest.mark.parametrize(
    ("path", "content", "rule"),
    [
        ("a.txt", b"plain", None),
        ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(20), None),
        ("a.pdf", b"%PDF-1.7\n\0\1\2", None),
        ("a.docx", b"PK\x03\x04", None),
        ("notes.md", b"MZ is a magic number", None),
        ("bytecode.pyc", b"text that is called so", None),
        ("a.docx.png", b"PK\x03\x04", "format.nested-archive"),
        ("a.dat", b"\x1f\x8b\x08", "format.nested-archive"),
        ("a.dat", bytes(257) + b"ustar\x0000", "format.nested-archive"),
        ("a", b"\x7fELF", "structure.compiled"),
        ("a.txt", b"MZ\x90\0", "structure.compiled"),
        ("x.pyc", b"\xa7\r\r\n\0\0", "structure.compiled"),
    ],
)
def test_what_the_first_bytes_show(path: str, content: bytes, rule: str | None) -> None:
    assert [finding.rule_id for finding in check_files({path: content})] == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("scripts/push.sh", b"docker push", ("shell_execution",)),
        ("scripts/RUN.PS1", b"", ("shell_execution",)),
        ("scripts/push", b"#!/usr/bin/env bash\nset -e\n", ("shell_execution",)),
        ("scripts/push", b"#!/bin/sh -e\n", ("shell_execution",)),
        ("scripts/run.py", b"#!/usr/bin/env python3\n", ()),
        ("refs/shell.md", b"Run `push.sh` in bash.\n", ()),
        ("refs/a.sh.md", b"", ()),
    ],
)
def test_a_shell_script_shows_that_the_skill_runs_commands(
    path: str, content: bytes, expected: tuple[str, ...]
) -> None:
    assert capabilities_of({"SKILL.md": b"---\n", path: content}) == expected
