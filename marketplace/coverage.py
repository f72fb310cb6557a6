"""Add up which files engines have read: what one of them left unread, another may have read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from marketplace.judgement import PRE_SCAN

_READ: Final = ("complete", "partial")
# More rows of a table are read by nobody.
_MOST_ROWS: Final = 100


@dataclass(frozen=True)
class CoveredFile:
    """A file that not every engine has read, and ``why``; ``read`` has an answer for each engine, in their order.

    An empty ``file`` stands for parts that an engine did not name.
    """

    file: str
    read: tuple[bool, ...]
    why: str = ""


@dataclass(frozen=True)
class Coverage:
    """What ``engines`` have read together; a file that is in none of ``files`` was read by every one of them."""

    engines: tuple[str, ...]
    files: tuple[CoveredFile, ...]

    @property
    def unread(self) -> tuple[str, ...]:
        """Return the files that no engine has read; an empty name stands for parts that nobody named."""
        return tuple(one.file for one in self.files if not any(one.read))

    @property
    def shown(self) -> tuple[CoveredFile, ...]:
        """Return as many rows as people read, those of files that nobody has read first."""
        return tuple(sorted(self.files, key=lambda one: (any(one.read), one.file)))[:_MOST_ROWS]

    @property
    def sentence(self) -> str:
        """Return in words what was read."""
        if not self.engines:
            return ""
        if not self.files:
            return "Every file was read by every engine." if len(self.engines) > 1 else "Every file was read."
        if not self.unread:
            return "Every file was read by at least one engine."
        if "" in self.unread:
            return "Parts of it were read by no engine."
        count = len(self.unread)
        return f"{count:,} file{'s were' if count > 1 else ' was'} read by no engine."


def add_up(statuses: Mapping[str, str], unread: Iterable[tuple[str, str, str]]) -> Coverage:
    """Return what engines have read together.

    ``statuses`` has the status of each engine's result by its name; one that failed has read nothing that counts.
    ``unread`` are an engine, a file that it left unread, and why: '' for parts that it did not name, which may be in
    any file.
    """
    left: dict[str, set[str]] = {name: set() for name, status in statuses.items() if status in _READ}
    reasons: dict[str, str] = {}
    for engine, file, why in unread:
        if engine in left:
            left[engine].add(file)
            reasons.setdefault(file, why)
    for name, files in left.items():
        if statuses[name] == "partial" and not files:
            files.add("")
    engines = tuple(sorted(left))
    return Coverage(
        engines,
        tuple(
            CoveredFile(file, tuple(left[one].isdisjoint({"", file}) for one in engines), reasons.get(file, ""))
            for file in sorted(set().union(*left.values()))
        ),
    )


def stored_coverage(engines: Sequence[Mapping[str, Any]], findings: Sequence[Mapping[str, Any]]) -> Coverage:
    """Return what was read, from engines (``name``, ``status``) and findings as they are stored."""
    statuses = {str(one.get("name")): str(one.get("status")) for one in engines if one.get("name") != PRE_SCAN}
    notes = [one for one in findings if one.get("kind") == "coverage"]
    return add_up(
        statuses, ((str(one.get("engine")), str(one.get("file") or ""), str(one.get("why") or "")) for one in notes)
    )
