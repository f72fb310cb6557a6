"""Lines of a comparison, ready to be shown: numbered on both sides, marked, hidden characters spelled out, bounded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from marketplace.artifacts.diffs import FileChange
from vskill.hidden_characters import escape_hidden, in_braces, visible

# On one page, of all files together; what is left out is counted.
MOST_LINES: Final = 1_500
MOST_CHARACTERS: Final = 300_000
LONGEST_LINE: Final = 1_000
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_KINDS: Final = {"+": ("added", "+"), "-": ("removed", "\N{MINUS SIGN}"), " ": ("same", " ")}


@dataclass
class Room:
    """The lines and characters that a page can still show."""

    lines: int = MOST_LINES
    characters: int = MOST_CHARACTERS

    def take(self, text: str) -> bool:
        """Return whether one more line has room, and count it if so."""
        if self.lines < 1 or len(text) > self.characters:
            return False
        self.lines -= 1
        self.characters -= len(text)
        return True


def shown_changes(changes: Iterable[FileChange]) -> list[dict[str, Any]]:
    """Return all files that differ; each has ``rows``, which are fewer than its lines where the page has no more room.

    ``left_out`` counts the lines of a file that are not among its rows.
    """
    room = Room()
    return [_shown(change, room) for change in changes]


def _shown(change: FileChange, room: Room) -> dict[str, Any]:
    lines = change.patch.split("\n") if change.patch and not change.is_too_large else []
    # A file whose every line ends as on other systems is not marked at each of them.
    if all(line.startswith("@@ ") or line.endswith("\r") for line in lines):
        lines = [line.removesuffix("\r") for line in lines]
    rows = _rows(lines, room)
    return {
        "path": visible(change.path),
        "file": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "too_large": change.is_too_large,
        "binary": change.binary,
        "rows": rows,
        "left_out": len(lines) - len(rows),
    }


def _rows(lines: Iterable[str], room: Room) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    old = new = 0
    for line in lines:
        hunk = _HUNK.fullmatch(line)
        text = line if hunk else _spelled_out(line[1:])
        if not room.take(text):
            break
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            rows.append({"kind": "place", "text": text})
            continue
        kind, sign = _KINDS[line[:1]]
        rows.append(
            {
                "kind": kind,
                "sign": sign,
                "old": None if kind == "added" else old,
                "new": None if kind == "removed" else new,
                "text": text,
            }
        )
        old += kind != "added"
        new += kind != "removed"
    return rows


def _spelled_out(line: str) -> str:
    shown = escape_hidden(line[:LONGEST_LINE], in_braces, keep="\t")
    more = len(line) - LONGEST_LINE
    return f"{shown} … ({more:,} more characters)" if more > 0 else shown
