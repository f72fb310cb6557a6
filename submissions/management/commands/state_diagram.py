"""Draw the states of a submission for docs/states.md."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from submissions.states import STATES, State

_HEAD: Final = """\
# States of a submission

Written by `manage.py state_diagram --write` from `submissions/states.py`, the table that pages, API, admin, pipeline
and recovery read. A step marked "operator" is taken by a person alone, in the admin and with a reason; the pipeline
takes the others.
"""


def document() -> str:
    """Return docs/states.md: a Mermaid state diagram and a table, both in the order of ``State``."""
    return "\n".join([_HEAD, "```mermaid", *_diagram(), "```", "", *_table(), ""])


def _diagram() -> Iterator[str]:
    yield "stateDiagram-v2"
    yield f"    [*] --> {State.RECEIVED}"
    for state in State:
        yield from (f"    {state} --> {following}" for following in _ordered(STATES[state].following))
        yield from (f"    {state} --> {following} : operator" for following in _ordered(STATES[state].by_operator))
        if not STATES[state].following and not STATES[state].by_operator:
            yield f"    {state} --> [*]"


def _table() -> Iterator[str]:
    yield "| state | label | group | explanation | next, by the pipeline | next, by an operator |"
    yield "|---|---|---|---|---|---|"
    for state in State:
        info = STATES[state]
        cells = [
            f"`{state}`",
            info.label,
            info.group,
            info.explanation,
            _names(info.following),
            _names(info.by_operator),
        ]
        yield f"| {' | '.join(cells)} |"


def _names(states: Collection[State]) -> str:
    return ", ".join(f"`{state}`" for state in _ordered(states)) or "none"


def _ordered(states: Collection[State]) -> list[State]:
    # A set of texts comes in another order in each process.
    return [state for state in State if state in states]


class Command(BaseCommand):
    """Print the document, write it, or say whether the one in docs/ is current."""

    help = (
        "Draw the states of a submission and the steps between them, as a Mermaid diagram and a table, from the table "
        "that the pipeline itself reads. Exit code 1 with --check: docs/states.md is not current."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument("--write", action="store_true", help="write docs/states.md instead of printing it")
        choice.add_argument(
            "--check", action="store_true", help="print nothing; fail when docs/states.md is not current"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print, write or compare; raise ``CommandError`` when the file that is compared is not current."""
        path = Path(settings.BASE_DIR) / "docs" / "states.md"
        if options["write"]:
            path.write_text(document(), encoding="utf-8")
            self.stdout.write(f"Written: {path}")
        elif not options["check"]:
            self.stdout.write(document(), ending="")
        elif not path.exists() or path.read_text(encoding="utf-8") != document():
            raise CommandError(
                f"{path} is not current: submissions/states.py says something else. Nothing was changed; "
                "run: manage.py state_diagram --write"
            )
