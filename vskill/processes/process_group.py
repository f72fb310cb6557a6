"""A group of child processes that are started, restarted and stopped together."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

logger = logging.getLogger(__name__)

# Seconds. Longer than a consumer takes to finish its grace period and return its work to the queue.
STOP_LIMIT: Final = 45.0
RESTART_PAUSE: Final = 1.0
MAX_RESTARTS: Final = 5
RESTART_WINDOW: Final = 60.0
_PR_SET_PDEATHSIG: Final = 1


def _end_with_parent() -> None:
    """Make Linux terminate this child when its parent dies, so that even a killed parent leaves no process behind."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _be_a_step() -> None:
    """Let Ctrl-C of a terminal reach the parent alone, which decides whether it ends this child."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        _end_with_parent()


class ProcessGroup:
    """Child processes by name, which are started together, restarted when one dies, and stopped together.

    The parent process keeps to one thread. Linux sends the signal of a dying parent once for each of its threads, and a
    second SIGTERM would end a consumer at once. A pool of database connections has threads, so work on the database is
    a step in a process of its own as well.

    ``commands`` maps a name to the arguments of its process, ``variables`` are added to the environment variables of
    each. ``stop`` may be called from a signal handler. ``failed`` says why the group gave up, and is empty before.
    """

    def __init__(self, commands: Mapping[str, Sequence[str]], variables: Mapping[str, str]) -> None:
        self._commands = dict(commands)
        self._variables = {**os.environ, "PYTHONUNBUFFERED": "1", **variables}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._step: subprocess.Popen[bytes] | None = None
        self._errands: list[tuple[subprocess.Popen[bytes], Callable[[int], None]]] = []
        self._deaths: list[float] = []
        self.stopping = False
        self.failed = ""

    def start(self) -> None:
        """Start every child."""
        for name in self._commands:
            self._start(name)

    def _start(self, name: str) -> None:
        self._children[name] = subprocess.Popen(
            self._commands[name],
            stdin=subprocess.DEVNULL,
            # Code between fork and exec is safe because this process has a single thread.
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
            env=self._variables,
        )
        if self.stopping:
            # stop() was called while this child was being started, and so did not reach it.
            self._children[name].terminate()

    def run_step(self, command: Sequence[str], *, keep_output: bool = False) -> tuple[int, bytes]:
        """Run one more child to its end; return its exit code and, with ``keep_output``, its standard output.

        A step is brief, so ``stop`` lets it finish; a second call ends it.
        """
        self._step = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if keep_output else None,
            preexec_fn=_be_a_step,
            env=self._variables,
        )
        output, _errors = self._step.communicate()
        return self._step.returncode, output or b""

    def run_beside(self, command: Sequence[str], ended: Callable[[int], None]) -> None:
        """Start one more child, which ends by itself; ``watch`` then calls ``ended`` with its exit code.

        It is not started again. ``stop`` terminates it, and then ``ended`` is not called.
        """
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_be_a_step, env=self._variables)
        self._errands.append((child, ended))
        if self.stopping:
            # As in _start.
            child.terminate()

    def ended(self) -> str | None:
        """Return the name of a child that has ended, or ``None`` while all of them run."""
        return next((name for name, child in self._children.items() if child.poll() is not None), None)

    def exit_code(self, name: str) -> int | None:
        """Return the exit code of a child, minus the signal that ended it, or ``None`` while it runs."""
        return self._children[name].poll()

    def watch(self) -> None:
        """Restart each child that ends by itself, until ``stop`` is called.

        Gives up and sets ``failed`` after more than ``MAX_RESTARTS`` deaths within ``RESTART_WINDOW`` seconds.
        """
        while not self.stopping:
            time.sleep(0.2)
            self._look_after_errands()
            name = self.ended()
            if name is None or self.stopping:
                continue
            now = time.monotonic()
            self._deaths = [moment for moment in self._deaths if now - moment < RESTART_WINDOW] + [now]
            code = self.exit_code(name)
            if len(self._deaths) > MAX_RESTARTS:
                self.failed = (
                    f"Children ended {len(self._deaths)} times within a minute (last {name}, code {code}); giving up."
                )
                return
            logger.error("%s ended with code %s and is started again", name, code)
            time.sleep(RESTART_PAUSE)
            if not self.stopping:
                self._start(name)

    def _look_after_errands(self) -> None:
        for child, ended in [one for one in self._errands if one[0].poll() is not None]:
            self._errands.remove((child, ended))
            if not self.stopping:
                ended(child.returncode)

    def stop(self) -> None:
        """Send SIGTERM to every child, or SIGKILL on a second call."""
        number = signal.SIGKILL if self.stopping else signal.SIGTERM
        steps = [self._step] if self._step is not None and self.stopping else []
        self.stopping = True
        errands = [child for child, _ended in self._errands]
        for child in (*self._children.values(), *errands, *steps):
            if child.poll() is None:
                child.send_signal(number)

    def end(self) -> None:
        """Stop the children, wait until each has ended, and kill those that do not end within ``STOP_LIMIT``."""
        if not self.stopping:
            self.stop()
        deadline = time.monotonic() + STOP_LIMIT
        errands = [("an errand", child) for child, _ended in self._errands]
        for name, child in (*self._children.items(), *errands):
            try:
                child.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                logger.error("%s did not end in time and is killed; its work comes back by itself", name)
                child.kill()
                child.wait()
