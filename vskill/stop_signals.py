"""The order to stop, as long-running commands hear it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, Final, Self

logger = logging.getLogger(__name__)

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# Ctrl-C reaches every process of a terminal, and a parent that hears it too passes it on as SIGTERM: one order, heard
# twice.
ECHO_SECONDS: Final = 2.0


class StopSignals:
    """Turn the first SIGTERM or SIGINT into an event, and end the process at once on the second.

    Entered in the main thread; ``event`` is then awaited in the event loop, which may run in another thread.
    """

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event: asyncio.Event | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._previous = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def event(self) -> asyncio.Event:
        """Return the event of the running loop; it is set already where the order came before."""
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()
        if self._first is not None:
            self._event.set()
        return self._event

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._first is not None:
            first, at = self._first
            if number != first and monotonic() - at < ECHO_SECONDS:
                return
            os._exit(1)
        self._first = number, monotonic()
        if self._loop is not None and self._event is not None:
            self._loop.call_soon_threadsafe(self._event.set)
