"""Lines of files of strangers, safe to show: numbered around a place, or coloured as a patch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from submissions.verification.fingerprints import LINES_AROUND
from vskill.access_tokens.token_form import without_tokens
from vskill.hidden_characters import visible

_LONGEST_LINE: Final = 300


def lines_around(text: str, line: int) -> list[dict[str, Any]]:
    """Return the numbered lines around ``line`` of ``text``, safe to show."""
    # As engines and editors count: other characters that split lines in Python do not end one.
    lines = text.replace("\r\n", "\n").split("\n")
    start = max(0, line - 1 - LINES_AROUND)
    return [
        {"number": number, "text": shown_line(one), "marked": number == line}
        for number, one in enumerate(lines[start : line + LINES_AROUND], start + 1)
    ]


def shown_line(line: str) -> str:
    """Return one line of a stranger's file, safe to show: cut, its tabs as spaces, hidden characters spelled out.

    An access token in it is not shown: whoever reviews the skill could use it.
    """
    return visible(without_tokens(line[: 2 * _LONGEST_LINE].expandtabs(4)), _LONGEST_LINE)


def shown_lines(lines: Iterable[str]) -> list[dict[str, str]]:
    """Return lines of a patch with the class that colours them."""
    kinds = {"+": "added", "-": "removed", "@": "place"}
    return [{"text": shown_line(one), "kind": kinds.get(one[:1], "")} for one in lines]
