"""The clock of the running event loop, moved instead of waited for."""

from __future__ import annotations

import asyncio

from vskill.fair_slots import FairSlots


async def let_time_pass(seconds: float) -> None:
    """Let the loop be ``seconds`` later: every timer that was due within them has gone off when this returns."""
    loop = asyncio.get_running_loop()
    time, passed = loop.time, asyncio.Event()
    loop.call_later(seconds, passed.set)
    loop.time = lambda: time() + seconds  # type: ignore[method-assign]  # the loop asks its own clock, so this moves it
    await passed.wait()


class WatchedPlaces(FairSlots):
    """Slots that tell when somebody has asked for one; there is none until ``add_one``."""

    def __init__(self) -> None:
        super().__init__(0)
        self.asked = asyncio.Event()

    async def acquire(self, *path: str) -> None:
        """Take a slot, as soon as there is one."""
        self.asked.set()
        await super().acquire(*path)

    def add_one(self) -> None:
        """Let there be one more slot."""
        self.release()
