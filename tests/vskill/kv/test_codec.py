"""A text is decoded quickly, and to what the standard library makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill.kv.codec import decode, encode, is_storable, storable


def refuse(name: str) -> Any:
    raise ValueError(name)


def by_the_standard_library(text: str) -> Any:
    """Return what ``json`` reads, or ``None`` in a list of its own where it reads nothing."""
    try:
        return json.loads(text, parse_constant=refuse)
    except ValueError:
        return ValueError


def decoded(text: str) -> Any:
    try:
        return decode(text)
    except ValueError:
        return ValueError


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal and of the same types throughout: 1 is not 1.0, and 0.0 not -0.0."""
    return repr(one) == repr(other)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(values)
def test_what_was_encoded_comes_back(value: Any) -> None:
    assert same(decode(encode(value)), value)


@given(values, st.sampled_from([None, 1]), st.booleans())
def test_other_spellings_are_read_alike(value: Any, indent: int | None, ascii_alone: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_alone)
    assert same(decoded(text), by_the_standard_library(text))


@given(st.text(alphabet='[]{}:,"\\u0dD8-+.eE19 \n\tnultrefas', max_size=40))
def test_what_is_almost_json_is_taken_and_refused_alike(text: str) -> None:
    assert same(decoded(text), by_the_standard_library(text))


@pytest.mark.parametrize(
    "text",
    [
        "-0",
        "-0.0",
        "1E2",
        "1e400",
        "0.1e1",
        "18446744073709551616",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "2.2250738585072011e-308",
        "0.1",
        '{"a":1,"a":2}',
        '"\\ud800"',
        '"\\ud83d\\ude00"',
        '"\\u0000"',
        "\ufeff1",
        " 1 ",
        "01",
        "1.",
        ".5",
        "+1",
        "[1,]",
        "NaN",
        "-Infinity",
        '"\x01"',
        "",
    ],
)
def test_the_corners_of_json_are_read_alike(text: str) -> None:
    assert same(decoded(text), by_the_standard_library(text))


@given(st.text(alphabet=st.characters(codec=None)))
def test_a_text_becomes_one_that_every_database_holds(text: str) -> None:
    held = storable(text)
    assert is_storable(held)
    assert len(held) == len(text)
    assert [one for one, other in zip(held, text, strict=True) if one == other] == list(filter(is_storable, text))
