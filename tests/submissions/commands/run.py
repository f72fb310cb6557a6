"""Run a command as a terminal would, and keep what it says and how it ends."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

from django.core.management import call_command


@dataclass(frozen=True)
class Ended:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Return the one JSON document that it printed."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def run(name: str, *arguments: str) -> Ended:
    """Run a command of the product to its end."""
    out, err = StringIO(), StringIO()
    code = 0
    try:
        call_command(name, *arguments, stdout=out, stderr=err)
    except SystemExit as ended:
        code = int(ended.code or 0)
    return Ended(code, out.getvalue(), err.getvalue())


def help_of(name: str) -> str:
    """Return what ``--help`` prints, on one line."""
    out = StringIO()
    with redirect_stdout(out):
        run(name, "--help")
    return " ".join(out.getvalue().split())
