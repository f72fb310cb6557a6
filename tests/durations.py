"""How long the modules of the suite take, so that processes that run side by side end at nearly the same time.

A run hands out modules in the order in which they are collected. One that takes minutes, handed out last, keeps one
process busy while the others have nothing left, so the longest are handed out first. ``durations.json`` has the seconds
of those worth an order, as last measured; a module that is missing there only comes later. To measure anew:
``make test DB=sqlite ARGS="-p tests.durations"``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

FILE: Final = Path(__file__).with_name("durations.json")
# Seconds. What takes less fills the gaps wherever it stands.
WORTH_AN_ORDER: Final = 3.0

_measured: Final[defaultdict[str, float]] = defaultdict(float)


def longest_first(items: list[pytest.Item]) -> None:
    """Sort tests by the time that their modules take, the longest first; modules not measured keep their order."""
    seconds: dict[str, float] = json.loads(FILE.read_text())
    items.sort(key=lambda item: -seconds.get(_module(item.nodeid), 0.0))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add what a step of a test took to its module."""
    _measured[_module(report.nodeid)] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was measured, where this is the process that hears of every test."""
    if not hasattr(session.config, "workerinput"):
        write(_measured)


def write(measured: Mapping[str, float]) -> None:
    """Write the modules that are worth an order, the longest first, in whole seconds."""
    longest = sorted(measured.items(), key=lambda one: -one[1])
    worth = {module: round(seconds) for module, seconds in longest if seconds >= WORTH_AN_ORDER}
    FILE.write_text(json.dumps(worth, indent=2) + "\n")


def _module(nodeid: str) -> str:
    return nodeid.partition("::")[0]
