"""Name a finding together with what it was found in, so that a waiver of it ends where that is changed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from submissions.verification.findings import Finding, FindingKind
from submissions.verification.packages import SkillPackage
from vskill.hidden_characters import visible

# Lines before and after the one that a finding names: as many as its reviewer was shown.
LINES_AROUND: Final = 7
_WAIVABLE: Final = frozenset({FindingKind.RISK, FindingKind.MALICIOUS, FindingKind.EXPOSURE})


class WaiverScope(StrEnum):
    """What must stay as it is for a waiver to count: the whole file, or the lines around the finding."""

    FILE = "file"
    PASSAGE = "passage"


class FileContent:
    """One file as fingerprints need it: its SHA-256 in hex, and a function that gives its text, or ``None``."""

    def __init__(self, sha256: str, read: Callable[[], str | None]) -> None:
        """Keep both; ``read`` is called only for a passage."""
        self.sha256 = sha256
        self._read = read

    @property
    def text(self) -> str | None:
        """Return the text of the file; ``None`` where it is no UTF-8 or was not kept."""
        return self._read()


def fingerprint(finding: Finding, scope: WaiverScope, content: FileContent) -> str | None:
    """Return 32 hex digits for a finding in a file, ``None`` where it cannot be waived with this ``scope``.

    They change with the rule, the title and the file's name; with ``file`` also with every byte of the file and the
    line, with ``passage`` with the line and those around it, wherever they stand. What a finding cuts off its excerpt
    counts, therefore. A problem of the format, a part that was not read and a finding without a file are never waived.
    """
    if finding.kind not in _WAIVABLE or not finding.file:
        return None
    if scope is WaiverScope.FILE:
        seen = f"{content.sha256}\0{finding.line or 0}"
    else:
        passage = _passage(content.text, finding.line)
        if passage is None:
            return None
        seen = passage
    parts = (scope.value, finding.engine, finding.rule_id, finding.title, finding.file, seen)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _passage(text: str | None, line: int | None) -> str | None:
    if text is None or line is None:
        return None
    lines = text.replace("\r\n", "\n").split("\n")
    if not 0 < line <= len(lines):
        return None
    start = max(0, line - 1 - LINES_AROUND)
    return "\n".join([str(line - 1 - start), *lines[start : line + LINES_AROUND]])


def contents_of(package: SkillPackage) -> dict[str, FileContent]:
    """Return the files of a package by the names that findings give them; see ``by_shown_name``."""
    return by_shown_name((one.path, FileContent(one.sha256, _reader(package.root / one.path))) for one in package.files)


def by_shown_name(files: Iterable[tuple[str, FileContent]]) -> dict[str, FileContent]:
    """Return files, given with their paths, by the names that findings give them.

    A name that two files have is left out, because a finding does not say which of them it is about.
    """
    named = [(visible(path), content) for path, content in files]
    times = Counter(name for name, _content in named)
    return {name: content for name, content in named if times[name] == 1}


def _reader(path: Path) -> Callable[[], str | None]:
    def read() -> str | None:
        try:
            return path.read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            return None

    return read


def waived(
    findings: Iterable[Finding], contents: Mapping[str, FileContent], waivers: Mapping[str, str]
) -> tuple[Finding, ...]:
    """Return the findings, each with the words of its waiver or with none.

    ``contents`` are the files by name, and ``waivers`` the words of each waiver by fingerprint.
    """
    return tuple(replace(one, waived=_words(one, contents.get(one.file), waivers)) for one in findings)


def _words(finding: Finding, content: FileContent | None, waivers: Mapping[str, str]) -> str:
    if content is None:
        return ""
    found = (waivers.get(fingerprint(finding, scope, content) or "") for scope in WaiverScope)
    return next((words for words in found if words), "")
