"""Show one file of a published version: as text, with every character that could deceive an eye spelled out."""

from __future__ import annotations

import unicodedata
from typing import Any, Final

from marketplace.artifacts.archives import read_member
from marketplace.models import ArchiveBlob
from marketplace.pages.skill import Found, raw_path
from vskill.environments import WorkerEnv

LARGEST_SHOWN: Final = 1_000_000
MOST_LINES: Final = 5_000
LONGEST_LINE: Final = 2_000
_DECEIVING: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def file_context(env: WorkerEnv, found: Found, path: str) -> dict[str, Any] | None:
    """Return what the page of one file shows, or ``None`` where the version has no such file."""
    listed = found.version.file(path)
    if listed is None:
        return None
    findings = [finding for finding in found.version.findings if finding.get("file") == path]
    context: dict[str, Any] = {
        "file": {**listed, "raw_href": raw_path(found, path), "line_count": None, "cut": False},
        "file_findings": [
            {"line": finding.get("line"), "title": finding.get("title") or finding.get("ruleId", "")}
            for finding in findings
        ],
        "lines": None,
        "unreadable": "",
    }
    if listed["size"] > LARGEST_SHOWN:
        context["unreadable"] = (
            "This file is too large to be shown here. The plain file and the archive have all of it."
        )
        return context
    blob = ArchiveBlob.objects.using(env.database).get(sha256=found.version.zip_sha256)
    text = as_text(read_member(bytes(blob.content), path))
    if text is None:
        context["unreadable"] = "This is not a text file, so there is nothing to read here."
        return context
    flagged = {finding["line"] for finding in findings if finding.get("line")}
    lines = text.removesuffix("\n").split("\n") if text else []
    context["file"]["line_count"] = len(lines)
    context["file"]["cut"] = len(lines) > MOST_LINES
    context["lines"] = [
        {"number": number, "text": revealed(line), "flagged": number in flagged}
        for number, line in enumerate(lines[:MOST_LINES], start=1)
    ]
    return context


def as_text(content: bytes) -> str | None:
    """Return the text that some bytes are, without a byte-order mark, or ``None`` where they are none."""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def revealed(line: str) -> str:
    r"""Return a line with invisible and direction-changing characters as ``\u{...}``, cut where it is endless."""
    shown = "".join(
        f"\\u{{{ord(character):x}}}"
        if character != "\t" and unicodedata.category(character) in _DECEIVING
        else character
        for character in line[:LONGEST_LINE]
    )
    more = len(line) - LONGEST_LINE
    return f"{shown} … ({more:,} more characters)" if more > 0 else shown
