"""Pytest plugin: run only the tests that depend on the database; the others ran on another one.

They are counted at the end as deselected, also by the processes of a parallel run.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.database_use import depends_on_the_database

_LEFT_OUT: Final = pytest.StashKey[int]()
_KEY: Final = "vskill_left_out"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out every test that passes or fails the same way on each database."""
    without = [item for item in items if not depends_on_the_database(item)]
    items[:] = [item for item in items if depends_on_the_database(item)]
    config.stash[_LEFT_OUT] = len(without)
    config.hook.pytest_deselected(items=without)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the count of a parallel run's process to the one that prints; nothing left to run is no failure."""
    left_out = session.config.stash.get(_LEFT_OUT, 0)
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[_KEY] = left_out
    elif left_out and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the count of a process of a parallel run; each collects all tests."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get(_KEY, 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many tests were left out, and why."""
    left_out = config.stash.get(_LEFT_OUT, 0)
    terminalreporter.section("tests without a database")
    terminalreporter.line(f"{left_out} tests that do not depend on the database were left out: they ran on the first.")
