"""Group commit: the work that callers request in one turn of the event loop is done in one transaction.

Work that is requested while a transaction runs is collected and goes into the next one. Each caller awaits its own
result. Under load one commit serves many callers; a single caller never waits for others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from vskill.kv.threads import call_on_loop, writers

# The most items of one transaction; a larger one would hold SQLite's only write lock for longer.
MOST_AT_ONCE: Final = 200

T = TypeVar("T")
R = TypeVar("R")


class Group(Generic[T, R]):
    """Collect the items that callers of one event loop add, and hand them to ``work`` many at a time.

    ``work`` runs on a writer thread, outside every worker environment, with at most ``MOST_AT_ONCE`` items. It returns
    a result or an exception for each item, in order; an exception that it raises goes to every caller of that batch.
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R | Exception]]) -> None:
        self._work = work
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._working = False

    def add(self, item: T) -> asyncio.Future[R]:
        """Add ``item`` to the next batch and return the future of its result.

        Cancelling the future does not take the item out of the batch.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._waiting.append((item, future))
        if not self._working:
            self._working = True
            # Not at once, so that items added in the same turn of the loop share the batch.
            loop.call_soon(self._start, loop)
        return future

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
        if not batch:
            self._working = False
            return
        # Shared, because the batch belongs to no single caller's environment.
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
    """Return the group called ``name`` of the running event loop; it is made with ``work`` on first use."""
    loop = asyncio.get_running_loop()
    by_name = _groups.get(loop)
    if by_name is None:
        by_name = _groups[loop] = {}
    found = by_name.get(name)
    if found is None:
        found = by_name[name] = Group(work)
    return found
