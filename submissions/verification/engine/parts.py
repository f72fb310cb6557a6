"""The values that readers and judges hand to each other: parts of a skill, and signs found in them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a part of a file is to an agent: text it follows, code it runs, remarks, or data."""

    PROSE = "prose"
    CODE = "code"
    COMMENT = "comment"
    DATA = "data"


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a file with one meaning.

    ``line`` is where it begins in the file, from 1. ``language`` is '' where unknown. ``heading`` are the headings
    above it, ``lead`` is the sentence before a block of code. ``origin`` says what it was decoded from, or which field
    of a manifest holds it; '' for what stands in the file as it is. ``inline`` is code within a sentence, ``hidden``
    what a reader of the page does not see, ``starts_itself`` what runs unasked: hooks and install scripts.
    """

    kind: Kind
    text: str
    file: str
    line: int = 1
    language: str = ""
    heading: str = ""
    lead: str = ""
    origin: str = ""
    inline: bool = False
    hidden: bool = False
    starts_itself: bool = False

    @property
    def is_document(self) -> bool:
        """Return whether it stands in a document, so that the words around it say what it is for."""
        return bool(self.heading or self.lead or self.inline) or self.file.lower().endswith((".md", ".mdx", ".txt"))


@dataclass(frozen=True, slots=True)
class Sign:
    """Something found in a part: the id of a rule, or the name of a capability in lower case, and its place.

    ``detail`` is what the judge weighs with it: a host, a path or a name.
    """

    name: str
    part: Part
    line: int
    excerpt: str
    detail: str = ""

    @property
    def place(self) -> tuple[str, int]:
        """Return the file and the line in it."""
        return self.part.file, self.line


def sign(name: str, part: Part, offset: int, detail: str = "") -> Sign:
    """Return a sign ``name`` at the line ``offset`` (from 0) of ``part``, with that line as its excerpt."""
    lines = part.text.split("\n", offset + 1)
    excerpt = lines[offset].strip()[:240] if offset < len(lines) else ""
    return Sign(name, part, part.line + (0 if part.origin else offset), excerpt, detail)
