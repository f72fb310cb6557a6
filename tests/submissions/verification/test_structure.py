"""The pre-scan: what the first bytes of files and their archives show."""

from __future__ import annotations

import pytest

from submissions.verification.archives_inside import OpenedArchives
from submissions.verification.findings import Severity
from submissions.verification.structure import capabilities_of, check_archives, check_files


@pytest.mark.parametrize(
    ("path", "content", "rule"),
    [
        ("a.txt", b"plain", None),
        ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(20), None),
        ("a.pdf", b"%PDF-1.7\n\0\1\2", None),
        ("a.docx", b"PK\x03\x04", None),
        ("notes.md", b"MZ is a magic number", None),
        ("bytecode.pyc", b"text that is called so", None),
        (
            "m.onnx",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n",
            "structure.lfs-pointer",
        ),
        ("m.md", b"version https://git-lfs.github.com/spec/v1\nis how a pointer begins\n", None),
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


def test_an_archive_that_was_opened_is_a_note_and_another_one_holds() -> None:
    archives = OpenedArchives(opened={"a.zip": 1}, unread={"b.7z": "archives of the kind 7z are not opened here"})
    assert [(one.rule_id, one.file, one.severity) for one in check_archives(archives)] == [
        ("structure.archive", "a.zip", Severity.LOW),
        ("structure.archive-unread", "b.7z", Severity.HIGH),
    ]
