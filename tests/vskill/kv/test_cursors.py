"""The text form of cursors, which clients hold on to while the server is updated."""

from __future__ import annotations

from typing import Any

import pytest

from vskill.kv.cursors import decode_cursor, encode_cursor


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("WyIwMTIzNDU2Nzg5YWJjZGVmIiwic3ViOlx1MDBlNH4_PiJd", ["0123456789abcdef", "sub:ä~?>"]),
        ("WyI4ZmNkYWNiYTUxZGMiLCJza2lsbC0wMDAwMCIsMV0", ["8fcdacba51dc", "skill-00000", 1]),
    ],
)
def test_cursors_of_earlier_releases_are_still_written_and_read(text: str, parts: list[Any]) -> None:
    assert encode_cursor(*parts) == text
    assert decode_cursor(text) == parts
