"""Write docs/rules.md, the rules of our own engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from submissions.evaluation.statistics import Share
from submissions.verification.engine.rules import MEASURED, RULES, read_measured
from submissions.verification.findings import Severity

_HEAD: Final = """\
# Rules

Written by `manage.py rules --write` from `submissions/verification/engine/rules.toml`, the table that our own engine
reads. A finding holds a skill for a person from severity `high`; below that it is a note. The severity here is the one
that a rule has where nothing around the place speaks for it: an example of what is bad, in a document, is a note. For
each rule there is a skill that breaks it and an honest one that is similar, in
`tests/submissions/verification/engine/fixtures.toml`.

The last column is what a rule held when it was measured on labelled public skills (docs/verification.md): how many of
those that it held were malicious, and the interval of Wilson of 95 % of that share. The rules were written by people
who had seen these skills, so that on others the share is lower. `manage.py rules --measured REPORT` renews it from a
report of the measurement in JSON (docs/scanning.md).
"""
_HEADER: Final = "| rule | severity | what it finds | why it matters | what to do | malicious of what it held |"


def document() -> str:
    """Return docs/rules.md: the rules, gravest first, each with what it held when it was measured."""
    measured = read_measured()
    about = measured.get("samples", {})
    said = f"Measured with version {measured.get('version', '?')} on {about.get('malicious', 0):,} malicious and "
    said += f"{about.get('benign', 0):,} honest skills.\n"
    return "\n".join([_HEAD, said, *_table(measured.get("rules", {})), ""])


def _table(measured: dict[str, Any]) -> Iterator[str]:
    yield _HEADER
    yield "|---|---|---|---|---|---|"
    for rule in sorted(RULES.values(), key=lambda one: (-Severity(one.severity).rank, one.id)):
        held = measured.get(rule.id, {"malicious": 0, "benign": 0})
        precision = _words(Share(held["malicious"], held["malicious"] + held["benign"]))
        cells = (f"`{rule.id}`", rule.severity, rule.title, rule.why, rule.advice, precision)
        yield f"| {' | '.join(cells)} |"


def _words(precision: Share) -> str:
    if precision.interval is None:
        return "held none"
    low, high = precision.interval
    return f"{precision.hits} of {precision.of} [{low:.2f}-{high:.2f}]"


def measured_of(report: Any) -> dict[str, Any]:
    """Return what is kept of a ``report`` of ``manage.py evaluate --json``: what each of our rules held, by label.

    Raises ``CommandError`` for a document of another kind.
    """
    try:
        [version] = [one["version"] for one in report["engines"] if one["name"] == "vskill"]
        section = report["sections"][0]
        rules = {
            name.removeprefix("vskill/"): {label: int(counted[label]) for label in ("malicious", "benign")}
            for name, counted in sorted(section["rules"].items())
            if name.startswith("vskill/")
        }
        samples = {label: int(section["samples"][label]) for label in ("malicious", "benign")}
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CommandError(
            "That is no report of `manage.py evaluate --json` with our engine. Nothing was written."
        ) from error
    return {"version": str(version), "samples": samples, "rules": rules}


class Command(BaseCommand):
    """Print, write or compare docs/rules.md."""

    help = (
        "Print the rules of our own engine as the table of docs/rules.md. Exit code 1 with --check: it is not current."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument("--write", action="store_true", help="write docs/rules.md")
        choice.add_argument(
            "--check", action="store_true", help="print nothing; fail when docs/rules.md is not current"
        )
        choice.add_argument(
            "--measured",
            metavar="REPORT",
            type=Path,
            help="keep what each rule held in a report of evaluate --json, and write docs/rules.md",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print, write or compare."""
        path = Path(settings.BASE_DIR) / "docs" / "rules.md"
        if options["measured"] is not None:
            self._keep(options["measured"])
        text = document()
        if options["write"] or options["measured"] is not None:
            path.write_text(text, encoding="utf-8")
            self.stdout.write(f"Written: {path}")
        elif not options["check"]:
            self.stdout.write(text, ending="")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            raise CommandError(f"{path} is not current. Nothing was changed; run: manage.py rules --write")

    def _keep(self, report: Path) -> None:
        try:
            found = json.loads(report.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CommandError(f"{report} cannot be read: {error}. Nothing was written.") from error
        MEASURED.write_text(json.dumps(measured_of(found), indent=1) + "\n", encoding="utf-8")
