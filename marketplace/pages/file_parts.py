"""The parts of a long file: which lines a page shows at once, how its address names them, and where a line is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from marketplace.errors import InvalidLines
from vskill.hidden_characters import visible

PART_LINES: Final = 5_000
"""How many lines a page shows at once."""

PARAMETER: Final = "lines"
# More digits than a file that is shown can have lines.
_RANGE: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
# As code hosts write it, in capitals; a heading's is in small letters.
_FRAGMENT: Final = re.compile(r"L([0-9]{1,9})(?:-L?[0-9]{1,9})?")


@dataclass(frozen=True)
class Lines:
    """Lines of a file, counted from 1, as an address asks for them."""

    first: int
    last: int

    @property
    def is_part(self) -> bool:
        """Return whether these are the lines of one part, of which the last may have fewer."""
        return self == part_with(self.first)

    @property
    def fragment(self) -> str:
        """Return what picks these lines on the page that has them."""
        return f"L{self.first}" + (f"-L{self.last}" if self.last > self.first else "")


def read_lines(given: str) -> Lines:
    """Return the lines that the value of ``lines=`` asks for; nothing asks for the first part.

    Raises ``InvalidLines`` for what are no lines of any file.
    """
    if not given.strip():
        return part_with(1)
    found = _RANGE.fullmatch(given.strip())
    first = int(found[1]) if found else 0
    last = int(found[2] or first) if found else 0
    if first < 1 or last < first:
        raise InvalidLines(
            f"The address asks for the lines {visible(given, 40)!r}. "
            f"Write the number of a line, as in lines=7000, or the first and the last, as in lines={_named(7_000)}."
        )
    return Lines(first, last)


def part_with(line: int) -> Lines:
    """Return the lines of the part that has a line."""
    first = (line - 1) // PART_LINES * PART_LINES + 1
    return Lines(first, first + PART_LINES - 1)


def at_line(address: str, line: int, fragment: str = "") -> str:
    """Return the address of a line in the part that has it, given the ``address`` of the page of its file.

    ``fragment`` picks more than the line. A line below 1 is none.
    """
    if line < 1:
        return address
    return f"{at_part(address, line)}#{fragment or f'L{line}'}"


def at_part(address: str, line: int) -> str:
    """Return the address of the part that has a line; the first part is the page that names none."""
    if line <= PART_LINES:
        return address
    return f"{address}{'&' if '?' in address else '?'}{urlencode({PARAMETER: _named(line)})}"


def line_of(fragment: str) -> int:
    """Return the first line that a decoded fragment picks, as in ``L7`` and ``L7-L9``; 0 where it picks none."""
    found = _FRAGMENT.fullmatch(fragment)
    return int(found[1]) if found else 0


def _named(line: int) -> str:
    part = part_with(line)
    return f"{part.first}-{part.last}"
