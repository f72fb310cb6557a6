"""What pages show of the scans of a version: the newest one, file by file, and the one that it was published by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from marketplace.addresses import file_href
from marketplace.coverage import stored_coverage
from marketplace.judgement import was_scanned
from marketplace.pages.skill import Found
from marketplace.pages.wording import verdict_words
from marketplace.skills.newest_scan import NewestScan, newest_scan, scan_of_publication
from vskill.hidden_characters import visible

_OUTCOMES: Final = {
    "complete": "Read all of it",
    "partial": "Read a part of it",
    "failed": "Failed",
    "timed_out": "Stopped for taking too long",
}


def scan(found: Found) -> dict[str, Any]:
    """Return what the newest scan says: engines that ran, their findings and what they read.

    ``again`` says when and how a version was scanned after its publication, and ``first`` what the scan said that it
    was published by; both are None where there was one scan alone. ``failed_again`` is a later scan that read nothing.
    """
    newest = newest_scan(found.version)
    shown = _without_coverage(newest.findings)
    counts = Counter(str(one.get("engine", "")) for one in shown)
    engines = [
        {
            "name": engine.get("name", ""),
            "version": engine.get("version", ""),
            "outcome": _OUTCOMES.get(str(engine.get("status", "")), engine.get("status", "")),
            "findings": counts[str(engine.get("name", ""))],
        }
        for engine in newest.engines
    ]
    first = scan_of_publication(found.version)
    return {
        "engines": engines,
        # What was not read is a table of its own.
        "findings": shown,
        "coverage": stored_coverage(newest.engines, newest.findings),
        "again": _in_words(newest) if newest.again else None,
        "first": {**_in_words(first), "findings": _without_coverage(first.findings)} if newest.again else None,
        "failed_again": newest.failed,
    }


def _in_words(scan: NewestScan) -> dict[str, Any]:
    return {
        "verdict": scan.verdict,
        "label": verdict_words(scan.verdict).label,
        "summary": scan.summary,
        "scanned_at": scan.scanned_at,
        "engines": scan.named_engines,
    }


def _without_coverage(findings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [finding for finding in findings if finding.get("kind") != "coverage"]


def files(found: Found) -> list[dict[str, Any]]:
    """Return the files, each with its number of findings, or ``None`` for a file that no engine has read.

    What was found in an archive counts for the archive.
    """
    newest = newest_scan(found.version)
    unread = stored_coverage(newest.engines, newest.findings).unread
    counts = Counter(_file_of(found, str(finding.get("file"))) for finding in _without_coverage(newest.findings))
    scanned = was_scanned(newest.engines)
    shown = []
    for file in found.version.manifest:
        # A space that is no plain one is spelled out, as in findings.
        name = visible(file["path"])
        shown.append(
            {
                "path": name,
                "size": file["size"],
                "sha256": file["sha256"],
                "executable": file.get("executable", False),
                "href": file_href(found.skill.slug, file["path"]) + found.exact,
                "findings": counts[name] or (0 if scanned and name not in unread else None),
            }
        )
    return shown


def findings_about(found: Found, path: str) -> list[dict[str, Any]]:
    """Return the findings about the file at ``path`` of a version, and about what is in it where it is an archive."""
    name = visible(path)
    findings = _without_coverage(newest_scan(found.version).findings)
    return [one for one in findings if _file_of(found, str(one.get("file"))) == name]


def not_read(found: Found, path: str) -> dict[str, Any] | None:
    """Return which engines of the newest scan left a file unread and why, or ``None`` where each has read it.

    ``by`` is empty where none of them has read it.
    """
    newest = newest_scan(found.version)
    read = stored_coverage(newest.engines, newest.findings)
    row = next((one for one in read.files if one.file == visible(path)), None)
    if row is None:
        return None
    by = [engine for engine, has_read in zip(read.engines, row.read, strict=True) if not has_read]
    return {"by": by if any(row.read) else [], "why": row.why}


def _file_of(found: Found, name: str) -> str:
    """Return the file of a version that a finding about ``name`` belongs to: ``a.zip`` for ``a.zip!/inner/file``."""
    archive, inside, _ = name.partition("!/")
    if not inside or any(visible(file["path"]) == name for file in found.version.manifest):
        return name
    return archive
