"""Write docs/rules.md, the rules of our own engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from submissions.verification.engine.rules import RULES
from submissions.verification.findings import Severity

_HEAD: Final = """\
# Rules

Written by `manage.py rules --write` from `submissions/verification/engine/rules.toml`, the table that our own engine
reads. A finding holds a skill for a person from severity `high`; below that it is a note. The severity here is the one
that a rule has where nothing around the place speaks for it: an example of what is bad, in a document, is a note. For
each rule there is a skill that breaks it and an honest one that is similar, in
`tests/submissions/verification/engine/fixtures.toml`.
"""


def document() -> str:
    """Return docs/rules.md: the rules, gravest first."""
    return "\n".join([_HEAD, *_table(), ""])


def _table() -> Iterator[str]:
    yield "| rule | severity | what it finds | why it matters | what to do |"
    yield "|---|---|---|---|---|"
    for rule in sorted(RULES.values(), key=lambda one: (-Severity(one.severity).rank, one.id)):
        yield f"| `{rule.id}` | {rule.severity} | {rule.title} | {rule.why} | {rule.advice} |"


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

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print, write or compare."""
        path = Path(settings.BASE_DIR) / "docs" / "rules.md"
        text = document()
        if options["write"]:
            path.write_text(text, encoding="utf-8")
            self.stdout.write(f"Written: {path}")
        elif not options["check"]:
            self.stdout.write(text, ending="")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            raise CommandError(f"{path} is not current. Nothing was changed; run: manage.py rules --write")
