"""Escape characters by which a text reads differently for a person than for a program.

One set serves pages, API, file names, admin and terminals: control characters, and what Unicode calls default-ignorable
(zero-width and bidirectional format characters, tags, variation selectors, Hangul fillers), private-use, unassigned and
surrogate code points, and blanks that are no spaces. The functions differ only in how they write an escape.

Two kinds are not hidden where they belong: a selector of text or emoji style after a symbol that has both, and a
joiner between two emoji or between two letters of a script that needs it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final

# The most characters that are shown of a sentence from outside.
MAX_SENTENCE: Final = 1000

_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Default_Ignorable_Code_Point of Unicode 15.1 (DerivedCoreProperties.txt), without those of the categories above; and
# the Braille blank, which looks like a space.
_IGNORABLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_STYLES: Final = "\ufe0e\ufe0f"
_JOINERS: Final = "\u200c\u200d"
_KEYCAP: Final = "\u20e3"
# Symbols with two styles that are of no symbol category (emoji-variation-sequences.txt).
_OTHER_SYMBOLS: Final = frozenset("\u00a9\u00ae\u203c\u2049\u2139\u3030")


def reveal_hidden(text: str) -> str:
    """Return ``text`` with hidden characters escaped as ``[U+202E]``; NUL, tabs, line ends and surrogates are left."""
    return escape_hidden(text, _in_brackets, keep="\0\t\n\r")


def visible(text: str, limit: int = MAX_SENTENCE) -> str:
    r"""Return ``text`` with hidden characters, and spaces other than the plain one, escaped as ``\u{...}``.

    The result has at most ``limit`` characters and ends with an ellipsis where it was cut. The function is idempotent.
    """
    shown = escape_hidden(text[: limit + 1], in_braces)
    shown = "".join(in_braces(one) if one != " " and one.isspace() else one for one in shown)
    # A joiner at the end of the cut would join nothing, and so be hidden.
    return shown if len(shown) <= limit else shown[: limit - 2].rstrip(f" {_JOINERS}") + " …"


def in_braces(character: str) -> str:
    r"""Return a character as ``\u{202e}``."""
    return f"\\u{{{ord(character):x}}}"


def _in_brackets(character: str) -> str:
    # A lone surrogate is replaced where the text is stored.
    return character if "\ud800" <= character <= "\udfff" else f"[U+{ord(character):04X}]"


def has_hidden(text: str) -> bool:
    """Return whether ``text`` has a hidden character."""
    return first_hidden(text) != ""


def first_hidden(text: str) -> str:
    """Return the first hidden character of ``text``, or '' where it has none."""
    return next((one for place, one in enumerate(text) if _is_hidden(text, place)), "")


def escape_hidden(text: str, escape: Callable[[str], str], *, keep: str = "") -> str:
    """Return ``text`` with each hidden character replaced by ``escape`` of it; those in ``keep`` are left."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        escape(one) if one not in keep and _is_hidden(text, place) else one for place, one in enumerate(text)
    )


def _is_hidden(text: str, place: int) -> bool:
    one = text[place]
    if " " <= one <= "~":
        return False
    if one in _STYLES:
        return not _has_styles(text, place - 1)
    if one in _JOINERS:
        return not _joins(text, place)
    return unicodedata.category(one) in _CATEGORIES or _IGNORABLE.match(one) is not None


def _has_styles(text: str, place: int) -> bool:
    """Return whether the character at ``place`` is a symbol that a style selector may follow."""
    if place < 0:
        return False
    one = text[place]
    if one in "0123456789#*":
        return text[place + 2 : place + 3] == _KEYCAP
    return one in _OTHER_SYMBOLS or _is_symbol(one)


def _is_symbol(one: str) -> bool:
    return one >= "\u2190" and one != "\u2800" and unicodedata.category(one) in ("So", "Sm")


def _joins(text: str, place: int) -> bool:
    before, after = text[max(0, place - 2) : place], text[place + 1 : place + 2]
    if not before or not after:
        return False
    if _of_joining_script(before[-1]) and _of_joining_script(after):
        return True
    # A skin tone is of category Sk.
    last = before[0] if before[-1] == "\ufe0f" or "\U0001f3fb" <= before[-1] <= "\U0001f3ff" else before[-1]
    return text[place] == "\u200d" and _is_symbol(last) and _is_symbol(after)


def _of_joining_script(one: str) -> bool:
    """Return whether a character is a letter or mark of a script from Arabic to the scripts of South Asia."""
    return ("\u0600" <= one <= "\u1cff" or "\ua8e0" <= one <= "\uabff") and unicodedata.category(one)[0] in "LM"
