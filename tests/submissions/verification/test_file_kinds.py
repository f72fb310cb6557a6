"""What a file is: code, or data that cannot run."""

from __future__ import annotations

import pytest

from submissions.verification.file_kinds import cannot_run

BINARY = b"\1\0\2"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.parquet", b"PAR1" + BINARY),
        ("model.onnx", BINARY),
        ("a.ttf", b"\0\1\0\0"),
        ("table.csv", b"a,b\n"),
        ("traces.jsonl", b"{}\n"),
        ("blob", BINARY),
    ],
)
def test_data_cannot_run(path: str, content: bytes) -> None:
    assert cannot_run(path, content, executable=False)
    assert not cannot_run(path, content, executable=True)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("README.md", b"Run the following."),
        ("settings.json", b"{}"),
        ("run.lua", b"print(1)"),
        ("run", b"#!/usr/bin/env lua\n\0"),
        ("tool", b"\x7fELF" + BINARY),
        ("tool.bin", b"MZ" + bytes(10)),
        ("tool", b"\xcf\xfa\xed\xfe"),
        ("a.jar", b"PK\3\4" + BINARY),
        ("a.wasm", b"\0asm"),
        ("a.pyc", BINARY),
        ("model.pkl", b"\x80\4\0"),
        ("weights.pt", b"PK\3\4" + BINARY),
        ("book.xlsm", b"PK\3\4" + BINARY),
        ("a.7z", b"7z\xbc\xaf\x27\x1c" + BINARY),
        ("a.py", BINARY),
    ],
)
def test_whatever_could_run_or_be_followed_can(path: str, content: bytes) -> None:
    assert not cannot_run(path, content, executable=False)


def test_the_mode_of_a_picture_says_nothing() -> None:
    assert cannot_run("logo.png", b"\x89PNG\r\n\x1a\n\0\0", executable=True)
    assert not cannot_run("logo.png", b"\x7fELF\0\0", executable=True)
