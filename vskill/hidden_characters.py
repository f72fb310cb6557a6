"""Spell out the characters that let a text say one thing to a person and another to a program."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# How long a sentence from outside is shown.
MAX_SENTENCE: Final = 1000

# Direction overrides, zero-width spaces, blank letters, tag characters and the selectors beside them let a text say one
# thing to a person and another to an agent. Joiners stay: emoji and several scripts need them.
_HIDDEN: Final = re.compile(
    "[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u180e\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\u3164\ufeff\uffa0"
    "\U000e0000-\U000e0fff]"
)
_DECEPTIVE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def reveal_hidden(text: str) -> str:
    """Return ``text`` with characters that hide, reorder text or command a terminal written as ``[U+202E]``."""
    return _HIDDEN.sub(lambda match: f"[U+{ord(match.group()):04X}]", text)


def visible(text: str, limit: int = MAX_SENTENCE) -> str:
    r"""Return ``text`` with everything that could deceive an eye or a terminal spelled out as ``\u{...}``.

    Control characters, bidirectional and zero-width format characters, tag characters, private-use characters,
    unpaired surrogates and exotic spaces are escaped. The result is at most ``limit`` characters long, an ellipsis
    at its end where it was cut; calling this again on the result changes nothing.
    """
    shown = "".join(_visible_character(character) for character in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 2].rstrip() + " …"


def _visible_character(character: str) -> str:
    if " " <= character <= "~":
        return character
    deceptive = unicodedata.category(character) in _DECEPTIVE or character.isspace() or character >= "\U000e0100"
    return f"\\u{{{ord(character):x}}}" if deceptive else character
