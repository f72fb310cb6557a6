"""The files of docs/production, with the places of this test run in place of those of a server."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Final

from tests.end_to_end.processes import ROOT

FOLDER: Final = ROOT / "docs" / "production"
# Where the page puts the checkout and the data.
CHECKOUT: Final = "/srv/vskill"
DATA: Final = "/var/lib/vskill"


def read(name: str) -> str:
    """Return the text of one file."""
    return (FOLDER / name).read_text(encoding="utf-8")


def in_place(text: str, places: dict[str, str]) -> str:
    """Return a text with each place of a server, which has to occur in it, replaced by one of this test run."""
    for place, here in places.items():
        assert place in text, f"{place!r} is not in it any more, so the test would try something else"
        text = text.replace(place, here)
    return text


def unit(name: str) -> str:
    """Return a systemd unit that runs from this checkout with the interpreter of the tests."""
    # First the programs: the virtual environment of a test run need not be in the checkout.
    return in_place(read(name), {f"{CHECKOUT}/.venv/bin": str(Path(sys.executable).parent), CHECKOUT: str(ROOT)})


def command_of(name: str) -> list[str]:
    """Return the command line of a unit's ExecStart."""
    [line] = re.findall(r"^ExecStart=(.+?)$", unit(name).replace("\\\n", " "), re.MULTILINE)
    return shlex.split(line)
