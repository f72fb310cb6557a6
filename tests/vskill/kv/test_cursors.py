"""The text form of cursors, which clients hold on to while the server is updated, and which they cannot forge."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from django.test import override_settings

from vskill.kv.cursors import decode_cursor, encode_cursor


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "x91kjjmcj0RVi_q8WyIwMTIzNDU2Nzg5YWJjZGVmIiwic3ViOlx1MDBlNH4_PiJd",
            ["0123456789abcdef", "sub:ä~?>"],
        ),
        ("OfQPjDFCNxF4J5ALWyI4ZmNkYWNiYTUxZGMiLCJza2lsbC0wMDAwMCIsMV0", ["8fcdacba51dc", "skill-00000", 1]),
    ],
)
@override_settings(SECRET_KEY="a key of a test")
def test_cursors_of_this_release_are_still_written_and_read_by_the_next(text: str, parts: list[Any]) -> None:
    assert encode_cursor(*parts) == text
    assert decode_cursor(text) == parts


@pytest.mark.parametrize("change", [0, 5, 12, 20, -1])
def test_a_cursor_that_was_changed_is_refused(change: int) -> None:
    signed = bytearray(base64.urlsafe_b64decode(encode_cursor("8fcdacba51dc", "skill-0000", 1) + "=="))
    signed[change] ^= 1
    with pytest.raises(ValueError, match="not signed here"):
        decode_cursor(base64.urlsafe_b64encode(signed).decode())


def test_a_cursor_without_a_signature_is_refused() -> None:
    with pytest.raises(ValueError, match="not signed here"):
        decode_cursor("WyI4ZmNkYWNiYTUxZGMiLCJza2lsbC0wMDAwMCIsMV0")
