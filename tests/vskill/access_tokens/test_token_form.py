"""The form of a token: random enough, told from what only looks like one, and shown by no log."""

from __future__ import annotations

import logging
import math
import re
import sys

from hypothesis import given
from hypothesis import strategies as st

from vskill.access_tokens.token_form import (
    FORM,
    REMOVED,
    TokenlessFormatter,
    is_token,
    lines_with_tokens,
    new_token,
    without_tokens,
)


def test_tokens_are_told_from_what_only_looks_like_one() -> None:
    tokens = {new_token() for _number in range(200)}
    assert len(tokens) == 200
    assert all(FORM.fullmatch(token) and is_token(token) for token in tokens)
    token = tokens.pop()
    changed = ("b" if token[10] == "a" else "a").join((token[:10], token[11:]))
    assert not any(is_token(text) for text in (changed, token[:-1], f"{token}a", token.upper(), "vsk_", "", "\ud800"))
    # All of the alphabet is used, so that each of the 32 characters counts.
    assert len(set("".join(one[4:36] for one in tokens))) == 62
    assert 32 * math.log2(62) > 160


@given(st.text())
def test_no_other_text_is_a_token(text: str) -> None:
    assert not is_token(text)
    assert not is_token(f"vsk_{text}")


def test_a_file_says_on_which_lines_a_token_stands() -> None:
    one, other = new_token(), new_token()
    fake = f"vsk_{'a' * 38}"
    text = f"key={one}, {other}\n{fake}\n\xff\n  '{other}'\n"
    assert list(lines_with_tokens(text.encode("latin-1"))) == [1, 4]
    assert list(lines_with_tokens(b"vsk_ is how they begin")) == []


def test_a_log_shows_no_token_and_no_large_part_of_one() -> None:
    token = new_token()
    assert without_tokens(f"({token}) {token[:30]} vsk_short") == f"({REMOVED}) {REMOVED} vsk_short"
    try:
        raise ValueError(token)
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "x", 1, "at %s", (f"/a/{token}",), sys.exc_info())
    line = TokenlessFormatter("{message}", style="{").format(record)
    assert f"at /a/{REMOVED}" in line
    assert "ValueError" in line
    assert not re.search(token[4:36], line)
