"""Count the work that the event loop does in each of its steps, so that no test needs a clock."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class LoopSteps:
    """The number of calls, of Python functions and of built-in ones, in the step of the loop that made the most.

    ``busiest`` names the functions that were called most often in that step.
    """

    def __init__(self) -> None:
        self.most_calls = 0
        self.busiest: list[tuple[str, int]] = []
        self._calls: dict[str, int] = {}

    def note(self, frame: FrameType, event: str, argument: object) -> None:
        """Count one event of the profiler; a callback of the loop begins a new step."""
        if event not in ("call", "c_call"):
            return
        if event == "call" and frame.f_code is asyncio.Handle._run.__code__:
            self.end_step()
        name = frame.f_code.co_qualname if event == "call" else getattr(argument, "__qualname__", str(argument))
        self._calls[name] = self._calls.get(name, 0) + 1

    def end_step(self) -> None:
        """Compare the step that ends with the busiest one so far."""
        if (total := sum(self._calls.values())) > self.most_calls:
            self.most_calls = total
            self.busiest = sorted(self._calls.items(), key=lambda pair: -pair[1])[:5]
        self._calls = {}


@contextmanager
def loop_steps() -> Iterator[LoopSteps]:
    """Count what the running loop does while the body runs; other threads are not counted."""
    asyncio.get_running_loop()
    steps = LoopSteps()
    sys.setprofile(steps.note)
    try:
        yield steps
    finally:
        sys.setprofile(None)
        steps.end_step()
