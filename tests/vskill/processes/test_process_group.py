"""A few processes that live and end together."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

import pytest

from vskill.processes.process_group import MAX_RESTARTS, RESTART_PAUSE, ProcessGroup

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

    monkeypatch.setattr("vskill.processes.process_group.time.sleep", pause)
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


# Asks for the order to stop, waits for it, and finishes.
STEP = """
import os, pathlib, signal, sys, time
os.kill(os.getppid(), signal.SIGUSR1)
marker = pathlib.Path(sys.argv[1])
while not marker.exists():
    time.sleep(0.01)
print("finished")
"""


def run_step(group: ProcessGroup, marker: Path, orders: int) -> tuple[int, bytes]:
    """Run ``STEP`` and give that many orders to stop in the middle of it."""

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        for _ in range(orders):
            group.stop()
        marker.touch()

    previous = signal.signal(signal.SIGUSR1, on_signal)
    try:
        return group.run_step([sys.executable, "-c", STEP, str(marker)], keep_output=True)
    finally:
        signal.signal(signal.SIGUSR1, previous)


def test_a_step_finishes_when_the_order_to_stop_comes_and_is_ended_by_the_second(tmp_path: Path) -> None:
    group = ProcessGroup({}, {})
    assert run_step(group, tmp_path / "one", orders=0) == (0, b"finished\n")
    assert run_step(group, tmp_path / "two", orders=1) == (0, b"finished\n")
    assert group.stopping
    assert run_step(ProcessGroup({}, {}), tmp_path / "three", orders=2)[0] == -signal.SIGKILL


def test_a_child_that_dies_too_often_is_given_up_with_the_true_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vskill.processes.process_group.time.sleep", lambda _seconds: None)
    group = ProcessGroup({"one": [sys.executable, "-c", "raise SystemExit(7)"]}, {})
    group.start()
    group.watch()
    group.end()

    assert group.failed.startswith(f"Children ended {MAX_RESTARTS + 1} times")
    assert "one, code 7" in group.failed


def test_a_child_beside_the_others_is_heard_once_and_ends_with_them(tmp_path: Path) -> None:
    (tmp_path / "marker").touch()
    lasting = [sys.executable, "-c", SECOND_LIFE, str(tmp_path / "marker")]
    group = ProcessGroup({"one": lasting}, {})
    group.start()
    heard: list[int] = []

    def ended(code: int) -> None:
        heard.append(code)
        group.run_beside(lasting, heard.append)
        group.stop()

    group.run_beside([sys.executable, "-c", "raise SystemExit(3)"], ended)
    group.watch()
    # It returns only when the second one has ended, which would last a minute.
    group.end()

    assert heard == [3]
    assert group.exit_code("one") == -signal.SIGTERM
