"""Places for what a process does few of at once, and a limit of work whose clock stands while it waits for one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

from vskill.errors import VskillError


class OutOfTime(VskillError):
    """Work took longer than its limit and was ended."""

    code = "out_of_time"


class _Clock:
    """The clock of one piece of work; it stands while the work waits for places and holds none.

    A part that holds a place works, so that the whole is at work however many other parts wait.
    """

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._waiting = 0
        self._holding = 0
        self._left: float | None = None
        self.ended = False

    def tell(self, *, waiting: int = 0, holding: int = 0) -> None:
        """Count who waits and who holds, and let the clock stand or go on."""
        self._waiting += waiting
        self._holding += holding
        # A part that outlives the work, or is being ended with it, has no clock any more.
        if self.ended or self._limit.expired():
            return
        now = asyncio.get_running_loop().time()
        stands = self._waiting > 0 and self._holding == 0
        if stands and (ends_at := self._limit.when()) is not None:
            self._left = ends_at - now
            self._limit.reschedule(None)
        elif not stands and self._left is not None:
            self._limit.reschedule(now + self._left)
            self._left = None


_current: Final[ContextVar[_Clock | None]] = ContextVar("vskill_work_clock", default=None)


@asynccontextmanager
async def work_limit(seconds: float) -> AsyncIterator[None]:
    """Let the body, with the tasks that it starts, work for ``seconds`` at the most; raise ``OutOfTime`` after them.

    Waiting in ``place`` is not counted and has no limit of its own: whoever is in front has one, so that each wait
    ends.
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
async def place(places: asyncio.Semaphore) -> AsyncIterator[None]:
    """Hold one of ``places`` during the body, and wait until there is one; the clock of a ``work_limit`` around it
    stands meanwhile."""
    clock = _current.get()
    if clock is None:
        async with places:
            yield
        return
    clock.tell(waiting=1)
    try:
        await places.acquire()
    finally:
        clock.tell(waiting=-1)
    clock.tell(holding=1)
    try:
        yield
    finally:
        clock.tell(holding=-1)
        places.release()
