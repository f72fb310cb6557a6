"""Scan one folder with skilltotal and print the report as JSON; runs only as a limited child process.

The library is used, not its command line: on a local folder the command line honours `skilltotal:ignore` comments,
with which a skill could suppress the findings about itself.
"""

# skilltotal ships no types.
# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from skilltotal import __version__
from skilltotal.collector import detect_component
from skilltotal.engine import analyze_directory
from skilltotal.file_index import FileIndex
from skilltotal.guard import evaluate
from skilltotal.models import SKIPPED_FOLDERS, UNANALYZED_TITLES, ThreatClass
from skilltotal.rules import get_rules

# skilltotal then only matches lines, which a payload can evade, and does not count the file as unread.
_TOO_DEEP = "Python file too deeply nested to analyze"
# Each large file gets a note of its own below, because a verdict depends on which files were left unread.
_UNREAD_TITLES = (UNANALYZED_TITLES | {SKIPPED_FOLDERS, _TOO_DEEP}) - {"Files too large to analyze"}
# Pictures, fonts, sound and documents by their first bytes. A code scanner need not read these.
_MEDIA = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF....(?:WEBP|WAVE|AVI )|\x00\x00\x01\x00|%PDF-|wOFF|wOF2"
    rb"|\x00\x01\x00\x00|OTTO|ttcf|ID3|OggS|fLaC|....ftyp|\x1aE\xdf\xa3|PK\x03\x04",
    re.DOTALL,
)
_PICTURE = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF....WEBP|\x00\x00\x01\x00", re.DOTALL)
_PICTURE_NAME = re.compile(r"[\w.%+-]{1,200}\.(?:png|jpe?g|gif|webp|ico)\b", re.IGNORECASE)
_DOCUMENT = re.compile(r"\.(?:(?:doc|xls|ppt|dot|xlt|pot|pps)[xm]|od[tspg]|epub|kmz)$", re.IGNORECASE)
_MATCHED_ONLY = re.compile(r"(ST-[A-Z0-9-]+) matched only in ")


def main(arguments: list[str]) -> None:
    """Print what skilltotal says of the folder ``arguments[0]``.

    The output is one JSON document: version, report, decision at skilltotal's threshold, unread and set-aside notes.
    """
    # A library may print too: stdout is moved to stderr, and the answer gets the original stdout.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    root = Path(arguments[0])
    component = replace(detect_component(root, source="skill"), source="skill")
    report = analyze_directory(root, component, inline_ignores=False).to_dict()
    decision = evaluate(report)
    document = {
        "version": __version__,
        "report": {key: report[key] for key in ("findings", "capabilities", "verdict", "risk_score", "risk_level")},
        "decision": "allow" if decision.allow else "block",
        "reasons": decision.reasons,
        "unread": [
            *(note for note in report["needs_review"] if note["title"] in _UNREAD_TITLES),
            *_silently_unread(root),
        ],
        "set_aside": [note for note in report["needs_review"] if _is_set_aside(note)],
    }
    with answer:
        json.dump(document, answer, ensure_ascii=True)


def _silently_unread(root: Path) -> Iterator[dict[str, Any]]:
    """Yield a note for each file that is too large, and for each that was skipped without a note.

    Those are in a cache folder, were taken for a binary, or are pictures that a text names.
    """
    index = FileIndex.build(root)
    for name in index.large:
        yield {"title": "File too large to analyze", "reason": "It has more than 2 MiB.", "file": name, "line": None}
    named = {unquote(name).rpartition(" ")[2] for file in index.files for name in _PICTURE_NAME.findall(file.text)}
    reported = {file.relpath for file in index.files} | {*index.minified, *index.large, *index.compiled}
    for path in sorted(one for one in root.rglob("*") if one.is_file()):
        name = path.relative_to(root).as_posix()
        if name in reported or name.endswith(".map"):
            continue
        with path.open("rb") as file:
            head = file.read(16)
        if _PICTURE.match(head) is not None and path.name.rpartition(" ")[2] in named:
            yield {"title": "File not read", "reason": "Text in pictures is not read.", "file": name, "line": None}
            continue
        in_skipped_folder = any(name.startswith(f"{folder}/") for folder, _kind in index.skipped_dirs)
        is_document = head.startswith(b"%PDF-") or _DOCUMENT.search(name) is not None
        if in_skipped_folder or is_document or (head and _MEDIA.match(head) is None):
            yield {
                "title": "File not read",
                "reason": "It is a document, in a folder that is passed over, or neither text nor a kind of media.",
                "file": name,
                "line": None,
            }


def _is_set_aside(note: Mapping[str, Any]) -> bool:
    """Tell whether a note is a risk that was found but not counted because of its folder.

    An agent reads and runs the files in docs/, tests/ and examples/ of a skill like all others.
    """
    match = _MATCHED_ONLY.match(note["reason"])
    return match is not None and _CLASSES.get(match[1], ThreatClass.CAPABILITY) is not ThreatClass.CAPABILITY


_CLASSES = {rule.id: rule.threat_class for rule in get_rules()}
