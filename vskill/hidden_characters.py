"""Escape characters by which a text reads differently for a person than for a program."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# The most characters that are shown of a sentence from outside.
MAX_SENTENCE: Final = 1000

# Control characters, direction overrides, zero-width spaces, blank letters, tag characters and the variation selectors
# beside them. They make a text read differently for a person than for an agent. Joiners are left, because emoji and
# several scripts need them.
_HIDDEN: Final = re.compile(
    "[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u180e\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\u3164\ufeff\uffa0"
    "\U000e0000-\U000e0fff]"
)
_DECEPTIVE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def reveal_hidden(text: str) -> str:
    """Return ``text`` with characters that hide text, reorder it or control a terminal escaped as ``[U+202E]``."""
    return _HIDDEN.sub(lambda match: f"[U+{ord(match.group()):04X}]", text)


def visible(text: str, limit: int = MAX_SENTENCE) -> str:
    r"""Return ``text`` with every character that could deceive a reader or a terminal escaped as ``\u{...}``.

    These are control characters, bidirectional and zero-width format characters, tag characters, private-use
    characters, lone surrogates and spaces other than the plain one. The result has at most ``limit`` characters and
    ends with an ellipsis where it was cut. The function is idempotent.
    """
    shown = "".join(_visible_character(character) for character in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 2].rstrip() + " …"


def _visible_character(character: str) -> str:
    if " " <= character <= "~":
        return character
    deceptive = unicodedata.category(character) in _DECEPTIVE or character.isspace() or character >= "\U000e0100"
    return f"\\u{{{ord(character):x}}}" if deceptive else character
