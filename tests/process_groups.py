"""Processes that a test starts as a terminal does, each in a group of its own that ends with the test."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Started:
    """A running process and its log file."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        """Return its output so far."""
        return self.log.read_text(errors="replace")

    def ended(self) -> int | None:
        """Return its exit code, or ``None`` while it runs."""
        return self.process.poll()

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until the condition is true; fail with the output if the process ends before that."""
        while not is_so():
            # Waits for the process, so that its end is noticed at once.
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self.process.wait(0.01)
                assert is_so(), f"it ended with {code} too early:\n{self.said()}"

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process alone."""
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """Press Ctrl-C: a terminal sends it to the whole group in the foreground."""
        os.killpg(self.process.pid, signal.SIGINT)

    def ends(self, seconds: float | None = None) -> int:
        """Wait for the end, at most ``seconds``, and return the exit code."""
        return self.process.wait(seconds)


@contextmanager
def started_group(command: Sequence[str], cwd: Path, environment: Mapping[str, str], log: Path) -> Iterator[Started]:
    """Start ``command`` in a process group of its own, kill the group after the body, and wait until it is gone.

    ``cwd`` is the folder that it runs in, ``environment`` all of its variables, ``log`` the file for its output.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Started(process, log)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    # The members are found before they are killed: then each is waited for, as one that ends late would still write
    # into a folder that is deleted, or use a database that is dropped.
    with contextlib.ExitStack() as stack:
        members = [stack.enter_context(_held(pid)) for pid in _members(process.pid)]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for member in members:
            if member is not None:
                select.select([member], [], [])


@contextmanager
def _held(pid: int) -> Iterator[int | None]:
    """Yield a descriptor that becomes readable when the process ends; ``None`` if it has ended already."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _members(group: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        # A race: the process may end in between.
        with contextlib.suppress(OSError):
            state, _parent, its_group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                found.append(int(folder.name))
    return found
