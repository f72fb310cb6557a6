"""Do together what is asked for at the same time: while the database works on some, the rest waits for the next turn.

Each caller awaits its own result. Under load one transaction and one commit serve many callers; a single one waits for
nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from vskill.kv.threads import call_on_loop, writers

# Of one statement; SQLite takes 32,766 parameters, and the widest of our rows has a dozen.
MOST_AT_ONCE: Final = 200

T = TypeVar("T")
R = TypeVar("R")


class Group(Generic[T, R]):
    """What the callers of one event loop ask of one database, done by ``work`` on a thread for many at once.

    ``work`` returns a result or an exception for each, in order; what it raises is raised for all of them.
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R | Exception]]) -> None:
        self._work = work
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._working = False

    def add(self, item: T) -> asyncio.Future[R]:
        """Return a future of the result for ``item``; it is worked on whether or not anybody still waits for it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._waiting.append((item, future))
        if not self._working:
            self._working = True
            # What is asked for in the same turn goes together.
            loop.call_soon(self._start, loop)
        return future

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
        if not batch:
            self._working = False
            return
        # Shared, because it belongs to the environment of none of those who wait.
        working = writers.submit_shared(partial(self._work, [item for item, _future in batch]))
        working.add_done_callback(partial(call_on_loop, loop, self._settle, loop, batch))

    def _settle(
        self,
        loop: asyncio.AbstractEventLoop,
        batch: list[tuple[T, asyncio.Future[R]]],
        working: Future[Sequence[R | Exception]],
    ) -> None:
        error = working.exception()
        results: Sequence[R | BaseException] = [error] * len(batch) if error is not None else working.result()
        for (_item, future), result in zip(batch, results, strict=True):
            if future.done():
                continue
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)
        self._start(loop)


_groups: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, Group[Any, Any]]] = WeakKeyDictionary()


def group(name: Hashable, work: Callable[[Sequence[T]], Sequence[R | Exception]]) -> Group[T, R]:
    """Return the group of that name of the running event loop, made with ``work`` where it is new."""
    loop = asyncio.get_running_loop()
    by_name = _groups.get(loop)
    if by_name is None:
        by_name = _groups[loop] = {}
    found = by_name.get(name)
    if found is None:
        found = by_name[name] = Group(work)
    return found
