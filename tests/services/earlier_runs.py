"""Pytest plugin: repeat above the closing line how the runs before this one ended.

The suite runs once for each database, and only the last run's closing line is seen at a glance.
"""

from __future__ import annotations

import os

import pytest

VARIABLE = "VSKILL_EARLIER_RUNS"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if earlier := os.environ.get(VARIABLE):
        terminalreporter.section("other databases")
        for line in earlier.splitlines():
            terminalreporter.line(line)
