"""Write text as a reader sees it, with every line kept where it is, and say what was disguised."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u2064\u206a-\u206f\ufeff]"
)
_JOINED: Final = re.compile("(?<=[A-Za-z])[\u200b\u200c\u200d\u2060]+(?=[A-Za-z])")
_OVERRIDE: Final = re.compile("[\u202d\u202e]")
_BIDI: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_TAGS: Final = re.compile("[\U000e0020-\U000e007e]{4,}")
# A flag of a region is a black flag, tag characters, and the end of a tag.
_FLAG: Final = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f")
_TAG_BASE: Final = 0xE0000
_LOOKALIKES: Final = str.maketrans(
    "аеорсухіјѕһԁԛԝАВЕЗІЈКМНОРСТУХѕοαντρικΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijshdqwABE3IJKMHOPCTYXsoavtpikABEZHIKMNOPTYX",
)
_MIXED: Final = re.compile(
    "[A-Za-z]{2,40}[\u0370-\u03ff\u0400-\u04ff]{1,3}[A-Za-z]|[A-Za-z][\u0400-\u04ff]{1,2}[A-Za-z]{2}"
    "|(?<![\u0400-\u04ff\\w])[\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0455\u0456][A-Za-z]{2,40}(?![\u0400-\u04ff])"
)
_WORD: Final = re.compile("[A-Za-z\u0370-\u04ff]{2,80}")
_LATIN: Final = re.compile("[A-Za-z]")
# Of these one is in whatever is disguised or left out; dashes, arrows and accents are in many texts and none of them.
_ODD: Final = re.compile(
    "[\u00ad\u034f\u0370-\u052f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\uff01-\uff5e\U0001d400-\U0001d7ff\U000e0020-\U000e007e]"
)
_STYLED: Final = re.compile("[\uff01-\uff5e\U0001d400-\U0001d7ff]{3}")


def with_newlines(text: str) -> str:
    """Return a text whose lines end as they do everywhere in this engine."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def normal_text(text: str) -> tuple[str, dict[str, int]]:
    """Return ``text`` normalised line by line, and the line (from 0) where each kind of disguise first occurs.

    The kinds are ``tags``, ``joined`` (invisible characters inside words), ``override`` (reversed text), ``mixed``
    (letters of two alphabets in one word) and ``styled`` (letters of mathematics or of full width). Tag characters
    become the letters that they stand for, on a line of the disguised text itself.
    """
    if text.isascii():
        return text, {}
    disguises: dict[str, int] = {}

    def note(kind: str, pattern: re.Pattern[str]) -> None:
        if (match := pattern.search(text)) is not None:
            disguises[kind] = text.count("\n", 0, match.start())

    text = _FLAG.sub("", text)
    if _ODD.search(text) is None:
        return text, {}
    for kind, pattern in (
        ("tags", _TAGS),
        ("joined", _JOINED),
        ("override", _OVERRIDE),
        ("mixed", _MIXED),
        ("styled", _STYLED),
    ):
        note(kind, pattern)
    if "tags" in disguises:
        text = _TAGS.sub(lambda match: " " + tag_text(match[0]) + " ", text)
    text = _BIDI.sub("", _INVISIBLE.sub("", text))
    if "styled" in disguises:
        text = unicodedata.normalize("NFKC", text)
    if "mixed" in disguises:
        # Only in words of two alphabets: a text in Russian or Greek stays one.
        text = _WORD.sub(lambda word: word[0].translate(_LOOKALIKES) if _LATIN.search(word[0]) else word[0], text)
    return text, disguises


def tag_text(tags: str) -> str:
    """Return the letters that tag characters stand for."""
    return "".join(chr(ord(one) - _TAG_BASE) for one in tags)
