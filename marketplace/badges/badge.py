"""Draw a badge as SVG: whose word it is, and what it says, in words and in a colour."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

from django.utils.html import escape

from marketplace.catalog import is_visible
from marketplace.judgement import verdict_of
from marketplace.models import SkillEntry, SkillVersion
from marketplace.pages.wording import FLAGGED, published_words

# Grounds on which white text has a contrast of more than 4.5.
_GROUNDS: Final = {
    "good": "#12603b",
    "note": "#6a4c00",
    "hold": "#8a3b06",
    "bad": "#9b1b28",
    "": "#55585f",
}
_LABEL: Final = "vskill"
_LABEL_GROUND: Final = "#2f3238"
# Of Verdana and its kin at 11 pixels. textLength makes the text as wide as that, whatever font there is.
_CHARACTER: Final = 6.6
_NARROW: Final = frozenset("fijlrt .,:")
_GAP: Final = 7
_HEIGHT: Final = 20


@dataclass(frozen=True)
class Said:
    """What a badge says, in a ``tone`` of the design."""

    text: str
    tone: str = ""


NOT_FOUND: Final = Said("not found")
WITHDRAWN: Final = Said("withdrawn", "bad")
YANKED: Final = Said("yanked", "hold")
NOTHING_OFFERED: Final = Said("no version offered")


def said_of(skill: SkillEntry, version: SkillVersion | None, *, exact: bool) -> Said:
    """Return what a badge says of a skill or of its ``version``, which is ``None`` where it has none to offer.

    ``exact`` says that the version was asked for by its number.
    """
    if not is_visible(skill):
        return WITHDRAWN
    if version is None:
        return NOT_FOUND if exact else NOTHING_OFFERED
    if version.yanked_at is not None:
        return YANKED
    words = FLAGGED if version.flag_reason else published_words(verdict_of(version))
    return Said(words.label.lower(), words.tone)


def drawn(said: Said) -> str:
    """Return the badge as SVG; it has neither scripts nor styles, and asks for nothing."""
    left, right = _width(_LABEL), _width(said.text)
    ground = _GROUNDS.get(said.tone, _GROUNDS[""])
    name = escape(f"{_LABEL}: {said.text}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}" role="img"'
        f' aria-label="{name}"><title>{name}</title>'
        f'<rect width="{left + right}" height="{_HEIGHT}" rx="3" fill="{ground}"/>'
        f'<path d="M3 0h{left - 3}v{_HEIGHT}H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="{_LABEL_GROUND}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f"{_text(_LABEL, _GAP, left)}{_text(said.text, left + _GAP, right)}</g></svg>\n"
    )


def _text(text: str, start: int, width: int) -> str:
    return f'<text x="{start}" y="14" textLength="{width - 2 * _GAP}">{escape(text)}</text>'


def _width(text: str) -> int:
    return round(sum(map(_share, text)) * _CHARACTER) + 2 * _GAP


def _share(character: str) -> float:
    if character in _NARROW:
        return 0.6
    return 1.7 if unicodedata.east_asian_width(character) in "WF" else 1.05
