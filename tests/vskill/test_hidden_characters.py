"""One set of characters is spelled out everywhere, and nothing that an honest text needs is in it."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.pages.file import in_colours
from submissions.source.tree_entries import odd_name
from vskill.hidden_characters import has_hidden, in_braces, reveal_hidden, visible

HIDDEN = (
    *("\x1b", "\x85", "\u00ad", "\u034f", "\u061c", "\u115f", "\u17b4", "\u180b", "\u180e", "\u200b", "\u200c"),
    *("\u200d", "\u200e", "\u202e", "\u2028", "\u2060", "\u2066", "\u206f", "\u2800", "\u3164", "\ue000", "\ufe00"),
    *("\ufe0f", "\ufeff", "\uffa0", "\ufff9", "\U0001d173", "\U000e0001", "\U000e0041", "\U000e0100", "\U000f0000"),
)
HONEST = (
    *("\u2764\ufe0f", "\u2764\ufe0e", "1\ufe0f\u20e3", "\u00a9\ufe0f", "\u2194\ufe0f", "\U0001f600", "\u4f60\u597d"),
    # A family, a rainbow flag, a woman scientist with a skin tone, Persian and Hindi words with joiners.
    *("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f3f3\ufe0f\u200d\U0001f308"),
    *(
        "\U0001f469\U0001f3fd\u200d\U0001f52c",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0915\u094d\u200d\u0937",
    ),
)


@pytest.mark.parametrize("character", HIDDEN, ids=ascii)
def test_every_place_spells_out_the_same_characters(character: str) -> None:
    text = f"a{character}b"
    assert has_hidden(text)
    assert reveal_hidden(text) == f"a[U+{ord(character):04X}]b"
    assert visible(text) == in_colours([(text, "")]) == f"a{in_braces(character)}b"
    assert odd_name(text) is not None


@pytest.mark.parametrize("text", HONEST, ids=ascii)
def test_what_an_honest_text_needs_is_left(text: str) -> None:
    assert reveal_hidden(text) == visible(text) == in_colours([(text, "")]) == text


@pytest.mark.parametrize(
    "text", ["a\ufe0f", "a\u200db", "\u2764\u200d", "\u2764\ufe0f\ufe0f", "1\ufe0f", "\ufe0f"], ids=ascii
)
def test_a_selector_or_joiner_that_does_nothing_is_spelled_out(text: str) -> None:
    assert has_hidden(text)


def test_every_character_that_pythons_unicode_calls_a_format_or_an_unknown_is_hidden() -> None:
    for point in range(0x80, sys.maxunicode + 1):
        if unicodedata.category(chr(point)) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}:
            assert has_hidden(chr(point)), hex(point)


@given(st.text(st.sampled_from("a \u2764\ufe0f\u200d\u200c\u202e\u0915\u094d"), max_size=30), st.integers(5, 40))
def test_what_is_spelled_out_is_left_by_a_second_time(text: str, limit: int) -> None:
    assert reveal_hidden(reveal_hidden(text)) == reveal_hidden(text)
    assert visible(visible(text, limit), limit) == visible(text, limit)


@pytest.mark.parametrize(
    "name",
    [
        *("NUL", "nul.txt", "NUL .txt", "nul . x", "COM1.md", "COM\u00b9", "com\u00b2.txt", "LPT\u00b3 .a"),
        *("CONIN$", "conout$.txt", "CLOCK$", "a/CONIN$ .x/b"),
    ],
)
def test_a_name_that_windows_reads_as_a_device_is_refused(name: str) -> None:
    assert odd_name(name) == "the name is a reserved device on Windows"


@pytest.mark.parametrize("name", ["null.txt", "COM10", "com\u2074", "CONIN", "clock", "a.NUL", "console $"])
def test_a_name_that_only_resembles_a_device_is_not(name: str) -> None:
    assert odd_name(name) is None
