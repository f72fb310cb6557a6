"""A pattern that is tried only around letters that it cannot do without."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

# What an anchor is a part of ends within so many letters after it.
_ROOM: Final = 500


class Anchored:
    """A pattern for long texts, which are searched for its ``anchors`` first, because that is quicker by far.

    ``pattern`` begins on the line of one of them, which stands in whatever it matches. ``command`` is another pattern,
    for the beginnings of lines, or ''. Neither is looked for in a text without one of the beginnings of words in
    ``needs``, which blanks separate (a blank inside one is written ``_``).
    """

    def __init__(self, needs: str, anchors: tuple[str, ...], pattern: str, command: str = "") -> None:
        self._needs = [word.replace("_", " ") for word in needs.split()]
        self._anchors = anchors
        self._pattern = re.compile(pattern)
        # With the end of the line before: a search for a letter is quicker than one for a beginning of a line.
        self._command = re.compile(rf"\n[ \t]*(?:{command})", re.MULTILINE) if command else None
        self._first = re.compile(rf"[ \t]*(?:{command})", re.MULTILINE)

    def find(self, text: str, lower: str) -> int:
        """Return where the first match begins, without blanks before it, or -1; ``lower`` is the same in lower case."""
        if not any(word in lower for word in self._needs):
            return -1
        found = next((match.start() for match in self._around(text)), -1)
        if self._command is None:
            return found
        match = self._first.match(text) or self._command.search(text)
        if match is None or 0 <= found < match.start():
            return found
        return match.end() - len(match[0].lstrip())

    def _around(self, text: str) -> Iterator[re.Match[str]]:
        for start, end in self._windows(text):
            if (match := self._pattern.search(text, start, end)) is not None:
                yield match

    def _windows(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield stretches of lines around anchors, in order; those that overlap become one."""
        begun, end = -1, -1
        for at in sorted(_places(text, self._anchors)):
            if at < end:
                end = max(end, at + _ROOM)
                continue
            if begun >= 0:
                yield begun, _end_of_line(text, end)
            begun, end = text.rfind("\n", 0, at) + 1, at + _ROOM
        if begun >= 0:
            yield begun, _end_of_line(text, end)


def _places(text: str, anchors: tuple[str, ...]) -> Iterator[int]:
    for anchor in anchors:
        at = text.find(anchor)
        while at >= 0:
            yield at
            at = text.find(anchor, at + len(anchor))


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
