"""The clock of the running event loop, moved instead of waited for."""

from __future__ import annotations

import asyncio
from typing import Literal


async def let_time_pass(seconds: float) -> None:
    """Let the loop be ``seconds`` later: every timer that was due within them has gone off when this returns."""
    loop = asyncio.get_running_loop()
    time, passed = loop.time, asyncio.Event()
    loop.call_later(seconds, passed.set)
    loop.time = lambda: time() + seconds  # type: ignore[method-assign]  # the loop asks its own clock, so this moves it
    await passed.wait()


class WatchedPlaces(asyncio.Semaphore):
    """Places that tell when somebody has asked for one."""

    def __init__(self, places: int) -> None:
        super().__init__(places)
        self.asked = asyncio.Event()

    async def acquire(self) -> Literal[True]:
        """Take a place, as soon as there is one."""
        self.asked.set()
        return await super().acquire()
