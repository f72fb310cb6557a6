"""Signals that stop a long-running command."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, Final, Self

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# Ctrl-C reaches every process of a terminal, and a parent passes it on as SIGTERM, so a child gets two signals for one
# request to stop.
ECHO_SECONDS: Final = 2.0


class StopSignals:
    """Turn the first SIGTERM or SIGINT into an event, and exit the process immediately on the second.

    The context is entered in the main thread. ``event`` is called in the event loop, which may run in another thread.
    """

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None
        self._event: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._previous: dict[int, Any] = {}
        self._previous_wakeup = -1

    def __enter__(self) -> Self:
        # Python runs signal handlers only in the main thread, which two signals at once can leave asleep in a lock (4
        # of 25 times). The thread that a signal reaches therefore writes its number to this socket and wakes the loop.
        self._heard, self._wakeup = socket.socketpair()
        self._heard.setblocking(False)
        self._wakeup.setblocking(False)
        self._previous_wakeup = signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)
        self._previous = {number: signal.signal(number, _ignore) for number in SIGNALS}
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_wakeup)
        self._wakeup.close()
        self._heard.close()

    def event(self) -> asyncio.Event:
        """Return an event of the running loop that the first signal sets, even one from before this call."""
        self._event = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._heard, self._read)
        return self._event

    def _read(self) -> None:
        for number in self._heard.recv(256):
            if number in SIGNALS:
                self._on_signal(number)

    def _on_signal(self, number: int) -> None:
        if self._first is None:
            self._first = number, monotonic()
            if self._event is not None:
                self._event.set()
            return
        first, at = self._first
        if number == first or monotonic() - at >= ECHO_SECONDS:
            os._exit(1)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Replace the default action, which would end the process; ``StopSignals._read`` handles the signal."""
