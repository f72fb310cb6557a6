"""A few processes that live and end together."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from vskill.process_group import MAX_RESTARTS, RESTART_PAUSE, ProcessGroup

# Ends at once the first time, and lives for a minute after that.
SECOND_LIFE = """
import pathlib, sys, time
marker = pathlib.Path(sys.argv[1])
if marker.exists():
    time.sleep(60)
marker.touch()
"""


def test_a_child_that_died_is_not_started_again_once_the_order_to_end_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = ProcessGroup({"one": [sys.executable, "-c", SECOND_LIFE, str(tmp_path / "marker")]}, {})

    def pause(seconds: float) -> None:
        if seconds == RESTART_PAUSE:
            group.stop()

    monkeypatch.setattr("vskill.process_group.time.sleep", pause)
    group.start()
    try:
        group.watch()
        assert group.ended() == "one"
    finally:
        group.end()


def test_an_order_that_comes_while_a_child_is_being_started_reaches_it(tmp_path: Path) -> None:
    (tmp_path / "marker").touch()
    group = ProcessGroup({"one": [sys.executable, "-c", SECOND_LIFE, str(tmp_path / "marker")]}, {})
    group.stop()
    group.start()
    group.end()

    assert group.exit_code("one") == -signal.SIGTERM


def test_a_child_that_dies_too_often_is_given_up_with_the_true_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vskill.process_group.time.sleep", lambda _seconds: None)
    group = ProcessGroup({"one": [sys.executable, "-c", "raise SystemExit(7)"]}, {})
    group.start()
    group.watch()
    group.end()

    assert group.failed.startswith(f"Children ended {MAX_RESTARTS + 1} times")
    assert "one, code 7" in group.failed
