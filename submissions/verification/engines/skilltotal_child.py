"""Scan one folder with skilltotal and print the report as JSON; runs in a limited child process only.

The library is used, not its command line: on a local folder the command line honours `skilltotal:ignore` comments,
with which a stranger's skill would silence the findings about itself.
"""

# skilltotal ships no types.
# mypy: disable-error-code="import-untyped"

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

from skilltotal import __version__
from skilltotal.collector import detect_component
from skilltotal.engine import analyze_directory
from skilltotal.guard import evaluate
from skilltotal.models import SKIPPED_FOLDERS, UNANALYZED_TITLES


def main() -> None:
    """Print one JSON document: version, report, decision at skilltotal's own threshold, what it did not read."""
    # Whatever a library prints must not get between the braces of the answer.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    root = Path(sys.argv[1])
    component = replace(detect_component(root, source="skill"), source="skill")
    report = analyze_directory(root, component, inline_ignores=False).to_dict()
    decision = evaluate(report)
    unread_titles = UNANALYZED_TITLES | {SKIPPED_FOLDERS}
    document = {
        "version": __version__,
        "report": {key: report[key] for key in ("findings", "capabilities", "verdict", "risk_score", "risk_level")},
        "decision": "allow" if decision.allow else "block",
        "reasons": decision.reasons,
        "unread": [note for note in report["needs_review"] if note["title"] in unread_titles],
    }
    with answer:
        json.dump(document, answer, ensure_ascii=True)


main()
