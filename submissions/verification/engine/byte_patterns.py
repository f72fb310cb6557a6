"""Look for patterns of bytes in files that are no text: byte_patterns.yar has them, YARA-X matches them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yara_x

from submissions.verification.engine.parts import Kind, Part, Sign

# How a file of pickled objects may begin: protocols 2 to 5, and the opcodes that protocols 0 and 1 begin with.
_PICKLED: Final = (b"\x80", b"c", b"(", b"]", b"}", b"i", b"I", b"S", b"V", b"X", b"\x8c")
_LONGEST_EXCERPT: Final = 120


@dataclass(frozen=True)
class BytePattern:
    """A pattern that a file holds: the rule it is a sign of, what stands there, and the bytes in a readable form."""

    file: str
    rule: str
    says: str
    excerpt: str


def _compile() -> yara_x.Rules:
    return yara_x.compile(Path(__file__).with_name("byte_patterns.yar").read_text(encoding="utf-8"))


_RULES: Final = _compile()


def byte_patterns(data: bytes, file: str) -> Iterator[BytePattern]:
    """Yield each pattern that a ``file`` with the bytes ``data`` holds; plain text holds none.

    A text is looked at only where it may be pickled objects: those of the first protocols are letters alone.
    """
    pickled = data.startswith(_PICKLED) and data.rstrip().endswith(b".")
    if not pickled and _is_text(data):
        return
    # Objects also lie within other files, such as arrays and models, which begin in their own way.
    within = b"\0" in data
    for match in _RULES.scan(data).matching_rules:
        about = dict(match.metadata)
        if about.get("pickled") and not (pickled or within):
            continue
        places = [(one.offset, one.length) for pattern in match.patterns for one in pattern.matches]
        offset, length = min(places, default=(0, 4))
        shown = data[offset : offset + min(length, _LONGEST_EXCERPT)].decode("latin-1")
        yield BytePattern(file, str(about["finds"]), str(about["says"]), f"at byte {offset:,}: {ascii(shown)[1:-1]}")


def signs_of_bytes(patterns: list[BytePattern]) -> Iterator[Sign]:
    """Yield what the patterns are signs of, in the order of the files."""
    for one in patterns:
        part = Part(Kind.DATA, "", one.file, origin=one.says)
        yield Sign(one.rule, part, 1, one.excerpt, one.says)


def _is_text(data: bytes) -> bool:
    if b"\0" in data:
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
