"""The anchors of headings, as GitHub makes them, so that a table of contents written for it works here."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from markdown_it.token import Token

# Before each id of a rendered text, so that none can be one of our own page's, nor a property of its document.
PREFIX: Final = "user-content-"
_LONGEST: Final = 200
_KEPT: Final = frozenset({"Nd", "Nl", "Pc"})


def give_ids(tokens: Sequence[Token]) -> frozenset[str]:
    """Give each heading of a parsed text its id, without the prefix, and return all of them."""
    used: dict[str, int] = {}
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and (name := anchor_of(inline)):
            opening.attrSet("id", _unused(name, used))
    return frozenset(used)


def anchor_of(inline: Token) -> str:
    """Return the anchor of a heading: lower case, hyphens for spaces, and no other marks than hyphen and underscore."""
    text = _text(inline.children or ()).strip().lower()
    kept = (one for one in text if one in "- " or unicodedata.category(one)[0] in "LM" or _is_kept(one))
    name = "".join(kept).replace(" ", "-")[:_LONGEST]
    # What sanitises the text adds the prefix only where it is not there yet.
    while name.startswith(PREFIX):
        name = name.removeprefix(PREFIX)
    return name


def find_anchor(fragment: str, ids: frozenset[str]) -> str:
    """Return the id among ``ids`` that a decoded fragment means, without the prefix; empty for none."""
    name = fragment.removeprefix(PREFIX)
    return next((one for one in (name, name.lower()) if one in ids), "")


def _is_kept(character: str) -> bool:
    return unicodedata.category(character) in _KEPT


def _text(children: Iterable[Token]) -> str:
    return "".join(child.content for child in children if child.type in ("text", "code_inline"))


def _unused(name: str, used: dict[str, int]) -> str:
    found = name
    while found in used:
        used[name] += 1
        found = f"{name}-{used[name]}"
    used[found] = 0
    return found
