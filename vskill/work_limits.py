"""A time limit for a piece of work, whose clock is stopped while the work waits for a slot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

from vskill.errors import VskillError
from vskill.fair_slots import FairSlots


class OutOfTime(VskillError):
    """Work took longer than its limit and was cancelled."""

    code = "out_of_time"


class _Clock:
    """The clock of one piece of work; it is stopped while a part of the work waits for a slot and no part holds one.

    A part that holds a slot is working, so the clock then runs, however many other parts wait.
    """

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._waiting = 0
        self._holding = 0
        self._left: float | None = None
        self.ended = False

    def count(self, *, waiting: int = 0, holding: int = 0) -> None:
        """Add to the number of parts that wait and that hold a slot, and stop or restart the clock accordingly."""
        self._waiting += waiting
        self._holding += holding
        # A part that outlives the work, or is cancelled together with it, no longer has a clock.
        if self.ended or self._limit.expired():
            return
        now = asyncio.get_running_loop().time()
        stopped = self._waiting > 0 and self._holding == 0
        if stopped and (ends_at := self._limit.when()) is not None:
            self._left = ends_at - now
            self._limit.reschedule(None)
        elif not stopped and self._left is not None:
            self._limit.reschedule(now + self._left)
            self._left = None


_current: Final[ContextVar[_Clock | None]] = ContextVar("vskill_work_clock", default=None)


@asynccontextmanager
async def work_limit(seconds: float) -> AsyncIterator[None]:
    """Allow the body ``seconds`` of work, with the tasks that it starts; then cancel it and raise ``OutOfTime``.

    Time spent waiting in ``hold_slot`` does not count and has no limit of its own: the work that holds the slot has
    one, so every wait ends.
    """
    limit = asyncio.timeout(seconds)
    clock = _Clock(limit)
    token = _current.set(clock)
    try:
        async with limit:
            try:
                yield
            finally:
                clock.ended = True
    except TimeoutError as error:
        if limit.expired():
            raise OutOfTime(f"no end within {seconds:g} s of work") from error
        raise
    finally:
        _current.reset(token)


@asynccontextmanager
async def hold_slot(slots: FairSlots, *path: str) -> AsyncIterator[None]:
    """Hold one of ``slots`` on behalf of ``path`` while the body runs, and wait first until it is its turn.

    The clock of an enclosing ``work_limit`` is stopped during the wait.
    """
    clock = _current.get()
    if clock is not None:
        clock.count(waiting=1)
    try:
        await slots.acquire(*path)
    finally:
        if clock is not None:
            clock.count(waiting=-1)
    if clock is not None:
        clock.count(holding=1)
    try:
        yield
    finally:
        if clock is not None:
            clock.count(holding=-1)
        slots.release(*path)
