"""The row numbers that the address of an operation carries: a stranger's text until each is known to be one."""

from __future__ import annotations

import pytest

from vskill.read_only_admin import row_numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", []),
        ("7", ["7"]),
        ("1,2,3", ["1", "2", "3"]),
        ("1,,x,-2,3.0, 4", ["1"]),
        ("9" * 18, ["9" * 18]),
        ("9" * 19, []),
        ("\u0663", []),
        ("1\n", []),
    ],
)
def test_only_what_can_be_the_number_of_a_row_is_left(text: str, numbers: list[str]) -> None:
    assert row_numbers(text) == numbers
