"""Pytest plugin: print the results of earlier runs above the last line.

The suite runs once per database, and readers look at the last line of the output.
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
