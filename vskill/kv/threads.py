"""Threads of our own for database work, each with a connection of its own.

Django's async ORM sends every query of a process through one thread, so gathered reads wait for one another. Work that
is handed to these threads overlaps. A thread keeps its connection from one piece of work to the next, because opening
one costs more than most reads do, and gives it back when nothing came for a tenth of a second; ``close()``, which
commands call at their end, does not wait for that.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from django.conf import settings
from django.core.signals import setting_changed
from django.db import connections

from vskill.worker_context import get_worker_env

P = ParamSpec("P")
T = TypeVar("T")

Work = Callable[[], None]
LINGER_SECONDS: Final = 0.1


def _give_connections_back(*, after_errors_only: bool = False) -> None:
    for connection in connections.all(initialized_only=True):
        if connection.errors_occurred or not after_errors_only:
            connection.close()


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - it is raised again where the result is awaited
        _give_connections_back(after_errors_only=True)
        future.set_exception(error)
    else:
        _give_connections_back(after_errors_only=True)
        future.set_result(result)


class _Crew:
    """The threads of a pool from their first work until they are ended."""

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def take(self, work: Work) -> None:
        """Let a thread do ``work``: an idle one, a new one, or the first that is done with its own."""
        self._work.put(work)
        if len(self._threads) < self._size and not self._idle.acquire(blocking=False):
            name = f"{self._name}-{len(self._threads)}"
            # A daemon, because it waits for work for ever; DatabaseThreads ends it before the interpreter ends.
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def end(self) -> None:
        """Wait until the work that was taken is done and the connections are given back."""
        for _thread in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            work()
            # A thread that waits must not keep alive what it worked for: futures, and the loop that awaits them.
            del work
        _give_connections_back()

    def _next(self) -> Work | None:
        try:
            return self._work.get_nowait()
        except queue.Empty:
            self._idle.release()
        try:
            return self._work.get(timeout=LINGER_SECONDS)
        except queue.Empty:
            _give_connections_back()
        return self._work.get()


class DatabaseThreads:
    """A bounded pool of threads for one kind of database work.

    ``size`` reads how many threads there may be when the pool is first used, so that settings are not read at import.
    """

    def __init__(self, name: str, size: Callable[[], int]) -> None:
        self._name = name
        self._size = size
        self._lock = threading.Lock()
        self._crew: _Crew | None = None
        atexit.register(self.close)

    def submit(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run ``func`` on a thread of the pool, in a copy of the caller's context and so in its worker environment."""
        # Asked here, so that work that outlives its batch is told so where it stands.
        get_worker_env()
        return self._start(contextvars.copy_context(), partial(func, *args, **kwargs))

    def submit_shared(self, func: Callable[[], T]) -> Future[T]:
        """Run ``func``, which serves several callers at once and so belongs to the context of none of them."""
        return self._start(contextvars.Context(), func)

    def _start(self, context: contextvars.Context, call: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._crew is None:
                self._crew = _Crew(self._name, self._size())
            self._crew.take(partial(_settle, future, partial(context.run, call)))
        return future

    async def run(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Await ``func`` on a thread of the pool.

        A caller that is cancelled stops waiting; a statement that has begun still ends, and its connection is given
        back.
        """
        return await asyncio.wrap_future(self.submit(func, *args, **kwargs))

    def close(self) -> None:
        """End the threads and their connections after the work that they were given; the next call starts new ones."""
        with self._lock:
            crew, self._crew = self._crew, None
        if crew is not None:
            crew.end()


def call_on_loop(loop: asyncio.AbstractEventLoop, func: Callable[..., object], *args: Any) -> bool:
    """Call ``func`` on the thread of ``loop``; return False where it has ended, and nobody waits any more."""
    try:
        loop.call_soon_threadsafe(func, *args)
    except RuntimeError:
        if not loop.is_closed():
            raise
        return False
    return True


readers = DatabaseThreads("kv-read", lambda: int(settings.KV_READ_WORKERS))
writers = DatabaseThreads("kv-write", lambda: int(settings.KV_WRITE_WORKERS))


def _resize(*, setting: str, **_kwargs: Any) -> None:
    if setting == "KV_READ_WORKERS":
        readers.close()
    if setting == "KV_WRITE_WORKERS":
        writers.close()


setting_changed.connect(_resize, dispatch_uid="vskill.kv.threads")
