"""Read for visitors on threads of their own, so that a slow page holds up neither /healthz nor intake nor the queue."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final, ParamSpec, TypeVar

from django.conf import settings
from django.core.signals import setting_changed
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from vskill.kv.threads import DatabaseThreads, readers
from vskill.visitors.deadline import StatementDeadline
from vskill.visitors.errors import TooBusy, TooSlow, VisitorLeft

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)

_ended: Final[Counter[str]] = Counter()
_begun: Final[set[StatementDeadline]] = set()


# How long a read waits for its turn, in seconds. Then it goes on without: one that waits for the database holds up no
# other for long.
PATIENCE: Final = 0.5
# What takes more seconds waits for another host, and no longer for the threads of this process.
AHEAD: Final = 3.0
_turn: Final = threading.Lock()
_ahead: Final[dict[object, float]] = {}


@contextmanager
def ahead_of_reads() -> Iterator[None]:
    """Let reads for visitors take turns in this process meanwhile, for ``AHEAD`` seconds: a submission has many steps.

    Threads of a process share its interpreter. With six of them busy, each of those steps would wait for all six.
    """
    work = object()
    _ahead[work] = time.monotonic() + AHEAD
    try:
        yield
    finally:
        _ahead.pop(work)


@contextmanager
def _in_turn() -> Iterator[None]:
    now = time.monotonic()
    has_turn = any(end > now for end in list(_ahead.values())) and _turn.acquire(timeout=PATIENCE)
    try:
        yield
    finally:
        if has_turn:
            _turn.release()


def ended_early() -> Mapping[str, int]:
    """Return how often this process ended work for a visitor before it was done, by the code of the error."""
    return dict(_ended)


def reading() -> int:
    """Return how many reads for visitors run in this process now or wait for a thread."""
    return len(_begun)


class VisitorReads:
    """Reads for visitors on ``threads``.

    Each read waits ``VISITOR_WAIT`` seconds for a thread, and has ``VISITOR_SECONDS`` for its statements from when it
    begins. With ``patient`` it waits as long as it takes: for an answer whose first part is already sent.
    """

    def __init__(self, threads: DatabaseThreads, *, patient: bool = False) -> None:
        self._threads = threads
        self._patient = patient

    async def run(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``func`` on a thread in the caller's environment, and return its result.

        A caller that is cancelled, as a view is when
        its visitor hangs up, ends the running statement in the database; work that has not begun is dropped. Raises
        ``TooSlow`` and ``TooBusy``.
        """
        deadline, future = self._begin(func, *args, **kwargs)
        waited_out = False

        def give_up() -> None:
            nonlocal waited_out
            # Only work that has not begun can be cancelled.
            waited_out = future.cancel()

        loop = asyncio.get_running_loop()
        timer = None if self._patient else loop.call_later(settings.VISITOR_WAIT, give_up)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if waited_out and not (task is not None and task.cancelling()):
                raise _counted(TooBusy()) from None
            deadline.leave()
            _ended[VisitorLeft.code] += 1
            raise
        finally:
            if timer is not None:
                timer.cancel()

    async def render(
        self,
        request: HttpRequest,
        template: str,
        func: Callable[P, Mapping[str, Any]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> HttpResponse:
        """Run ``func`` as ``run`` does, and return the page that ``template`` makes of its result.

        The page is made on the same thread: on the event loop it would hold up every other request meanwhile.
        """
        return await self.run(lambda: render(request, template, dict(func(*args, **kwargs))))

    def run_sync(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``func`` as ``run`` does, for a caller without an event loop, which waits as long as it takes."""
        return self._begin(func, *args, **kwargs)[1].result()

    def _begin(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> tuple[StatementDeadline, Future[T]]:
        deadline = StatementDeadline(settings.VISITOR_SECONDS)

        def call() -> T:
            try:
                with _in_turn(), deadline.held():
                    return func(*args, **kwargs)
            except TooSlow as error:
                raise _counted(error) from error.__cause__

        future = self._threads.submit(call)
        _begun.add(deadline)
        future.add_done_callback(lambda _future: _begun.discard(deadline))
        return deadline, future


def _counted(error: TooSlow | TooBusy) -> TooSlow | TooBusy:
    _ended[error.code] += 1
    return error


_page_threads: Final = DatabaseThreads("page-read", lambda: int(settings.PAGE_WORKERS))
_list_threads: Final = DatabaseThreads("list-read", lambda: int(settings.LIST_WORKERS))

page_reads: Final = VisitorReads(_page_threads)
"""Reads of single things: a skill, a version, an archive, a submission."""

part_reads: Final = VisitorReads(_page_threads, patient=True)
"""Reads of the next part of an archive that is being sent."""

list_reads: Final = VisitorReads(_list_threads)
"""Reads of many rows: lists, search, figures. They have threads of their own, so that slow ones leave pages alone."""

intake_reads: Final = VisitorReads(readers)
"""Reads of a form that submits, on the threads of entries, which neither pages nor lists use."""


def _resize(*, setting: str, **_kwargs: Any) -> None:
    if setting == "PAGE_WORKERS":
        _page_threads.close()
    if setting == "LIST_WORKERS":
        _list_threads.close()


setting_changed.connect(_resize, dispatch_uid="vskill.visitors.reads")
