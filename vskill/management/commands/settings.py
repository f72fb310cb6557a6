"""Say which settings are in force, and keep the documents about them current."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from vskill.configuration import BASE_DIR, VARIABLES, load
from vskill.variables import Variable

BEGIN: Final = "<!-- settings: written by manage.py settings --write -->"
END: Final = "<!-- end of settings -->"
_HEAD: Final = """\
# Settings

Written by `manage.py settings --write` from `vskill/configuration.py`. Everything is a variable of the environment, or
a line of a file `.env` beside `manage.py`; the environment wins. An empty variable counts as one that is not set. Times
are written `90`, `90s`, `2m`, `1h` or `1d`. Relative paths count from the checkout. `manage.py settings` shows what is
in force and where it comes from.
"""
_EXAMPLE_HEAD: Final = """\
# Copy to .env and change what you need. Each line shows the default, or an example; docs/settings.md explains them.
# A variable of the process environment wins over this file. A comment has a line of its own.
"""


def page() -> str:
    """Return docs/settings.md."""
    parts = [_HEAD]
    for group, variables in groupby(VARIABLES, lambda variable: variable.group):
        parts.append(f"## {group}\n\n{_table(list(variables))}\n")
    return "\n".join(parts)


def short_table() -> str:
    """Return the table of the README: the variables that matter to most."""
    rows = _table([variable for variable in VARIABLES if variable.matters])
    return re.sub(r"\]\((\w+\.md)", r"](docs/\1", rows)


def _table(variables: list[Variable]) -> str:
    lines = ["| variable | default | what it does |", "|---|---|---|"]
    for variable in variables:
        default = variable.default_text()
        shown = default or "none" if variable.shown or not default else f"`{default}`"
        lines.append(f"| `{variable.name}` | {shown} | {variable.sentence} |")
    return "\n".join(lines)


def example() -> str:
    """Return .env.example."""
    parts = [_EXAMPLE_HEAD]
    for group, variables in groupby(VARIABLES, lambda variable: variable.group):
        lines = [f"# {group}"]
        lines += [f"#{variable.name}={_example_of(variable)}" for variable in variables]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _example_of(variable: Variable) -> str:
    return variable.example or ("" if variable.shown else variable.default_text())


def documents() -> dict[Path, str]:
    """Return each document about settings, by its path, as it should be."""
    readme = BASE_DIR / "README.md"
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    _old, after = rest.split(END)
    return {
        BASE_DIR / "docs" / "settings.md": page(),
        BASE_DIR / ".env.example": example(),
        readme: f"{before}{BEGIN}\n\n{short_table()}\n\n{END}{after}",
    }


class Command(BaseCommand):
    """Print the settings that are in force and where each comes from."""

    help = (
        "Print every setting that is in force and where it comes from: the default, the file .env, or the environment. "
        "Secrets are not shown. Exit code 1 with --check: a document about settings is not current."
    )
    # A setting that a check refuses is what one wants to see here.
    requires_system_checks = []  # noqa: RUF012 - Django reads it as a class attribute, and declares it otherwise

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document")
        choice.add_argument(
            "--write", action="store_true", help="write docs/settings.md, .env.example and the table of the README"
        )
        choice.add_argument("--check", action="store_true", help="print nothing; fail when one of them is not current")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print, write or compare."""
        if options["write"] or options["check"]:
            old = [path for path, text in documents().items() if not path.exists() or path.read_text("utf-8") != text]
            if options["check"] and old:
                names = ", ".join(path.name for path in old)
                raise CommandError(f"Not current: {names}. Nothing was changed; run: manage.py settings --write")
            for path in old if options["write"] else []:
                path.write_text(documents()[path], encoding="utf-8")
                self.stdout.write(f"Written: {path}")
            return
        settings = load().values()
        if options["as_json"]:
            shown = [{"name": one.variable.name, "value": one.shown(), "source": one.source} for one in settings]
            self.stdout.write(json.dumps({"settings": shown}))
            return
        width = max(len(one.variable.name) for one in settings)
        for group, variables in groupby(settings, lambda one: one.variable.group):
            self.stdout.write(self.style.MIGRATE_HEADING(group))
            for one in variables:
                source = "" if one.source == "default" else f"   ({one.source})"
                self.stdout.write(f"  {one.variable.name:<{width}}  {one.shown() or '(none)'}{source}")
