"""The form of a token, by which people and scanners of secrets know one wherever it was left.

A token is ``vsk_``, 32 random letters and digits (190 bits), and six more that are the CRC-32 of those: a text that
only looks like a token is told from one without asking the database.
"""

from __future__ import annotations

import logging
import re
import secrets
import string
import zlib
from collections.abc import Iterator
from typing import Final

PREFIX: Final = "vsk_"
FORM: Final = re.compile(r"vsk_[0-9A-Za-z]{38}")
# A part of a token, as where an excerpt was cut, tells too much of it as well.
_PART: Final = re.compile(r"vsk_[0-9A-Za-z]{16,}")
# What stands for a token in logs, errors and excerpts.
REMOVED: Final = "vsk_[removed]"

_ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM: Final = 32
_CHECK: Final = 6
_IN_BYTES: Final = re.compile(FORM.pattern.encode())
_PREFIX_IN_BYTES: Final = PREFIX.encode()


def new_token() -> str:
    """Return a new random token."""
    random = "".join(secrets.choice(_ALPHABET) for _number in range(_RANDOM))
    return f"{PREFIX}{random}{_checksum(random)}"


def is_token(text: str) -> bool:
    """Return whether ``text`` is a token by its form and its checksum; whether it is known is another question."""
    random = text[len(PREFIX) : -_CHECK]
    return FORM.fullmatch(text) is not None and text.endswith(_checksum(random))


def without_tokens(text: str) -> str:
    """Return ``text`` with ``vsk_[removed]`` in the place of each token, and of what looks like one or most of one."""
    return _PART.sub(REMOVED, text) if PREFIX in text else text


def lines_with_tokens(content: bytes) -> Iterator[int]:
    """Yield the number of each line of a file on which a token stands, from 1; what only looks like one is none."""
    if _PREFIX_IN_BYTES not in content:
        return
    before = 0
    for found in _IN_BYTES.finditer(content):
        line = content.count(b"\n", 0, found.start()) + 1
        if line != before and is_token(found[0].decode("ascii")):
            before = line
            yield line


class TokenlessFormatter(logging.Formatter):
    """Format a record of the log without the tokens that it may hold: in an address that somebody pasted, say."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and its traceback, with ``vsk_[removed]`` in the place of each token."""
        return without_tokens(super().format(record))


def _checksum(random: str) -> str:
    number, text = zlib.crc32(random.encode("ascii", "replace")), ""
    for _place in range(_CHECK):
        number, digit = divmod(number, len(_ALPHABET))
        text = _ALPHABET[digit] + text
    return text
