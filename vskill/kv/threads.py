"""Threads for database work, each with its own connection.

Django's asynchronous ORM sends every query of a process through one thread, so gathered reads wait for one another.
Work that is submitted to these threads runs concurrently. A thread keeps its connection from one piece of work to the
next, because opening one takes longer than most reads, and closes it after a tenth of a second without work.
``close()``, which commands call when they end, does not wait for that.
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
from weakref import WeakSet

from django.conf import settings
from django.core.signals import setting_changed
from django.db import connections

from vskill.worker_context import get_worker_env

P = ParamSpec("P")
T = TypeVar("T")

Work = Callable[[], None]
LINGER_SECONDS: Final = 0.1
_pools: Final[WeakSet[DatabaseThreads]] = WeakSet()


def _close_connections(*, after_errors_only: bool = False) -> None:
    for connection in connections.all(initialized_only=True):
        if connection.errors_occurred or not after_errors_only:
            connection.close()


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - it is raised again where the result is awaited
        _close_connections(after_errors_only=True)
        future.set_exception(error)
    else:
        _close_connections(after_errors_only=True)
        future.set_result(result)


class _Crew:
    """One generation of a pool's threads, from the first work until ``end``."""

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def take(self, work: Work) -> None:
        """Run ``work`` on an idle thread, on a new one, or on the first that becomes free."""
        self._work.put(work)
        if len(self._threads) < self._size and not self._idle.acquire(blocking=False):
            name = f"{self._name}-{len(self._threads)}"
            # A daemon, because it waits for work without end; DatabaseThreads ends it at exit.
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                # The threads that there are take it; without any it would wait for ever.
                if not self._threads:
                    self._work.get_nowait()
                    raise
            else:
                self._threads.append(thread)

    def end(self) -> None:
        """Wait until the work taken is done and the connections are closed."""
        for _thread in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            work()
            # An idle thread must not keep its last work alive: a future, and the event loop that awaits it.
            del work
        _close_connections()

    def _next(self) -> Work | None:
        try:
            return self._work.get_nowait()
        except queue.Empty:
            self._idle.release()
        try:
            return self._work.get(timeout=LINGER_SECONDS)
        except queue.Empty:
            _close_connections()
        return self._work.get()


class DatabaseThreads:
    """A bounded pool of threads for one kind of database work.

    ``name`` is the prefix of the threads' names. ``size`` returns the largest number of threads; it is called when the
    pool is first used, so that settings are not read at import.
    """

    def __init__(self, name: str, size: Callable[[], int]) -> None:
        self._name = name
        self._size = size
        self._lock = threading.Lock()
        self._crew: _Crew | None = None
        atexit.register(self.close)
        _pools.add(self)

    def submit(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run ``func`` on a thread of the pool, in a copy of the caller's context, and return the future of its result.

        The copy carries the caller's worker environment. Raises ``EnvClosed`` where the scope of that has ended.
        """
        # Checked here, so that the error is raised in the code that outlived its scope.
        get_worker_env()
        return self._start(contextvars.copy_context(), partial(func, *args, **kwargs))

    def submit_shared(self, func: Callable[[], T]) -> Future[T]:
        """Run ``func`` on a thread of the pool in an empty context, and return the future of its result.

        For work that serves several callers and so belongs to no single caller's environment.
        """
        return self._start(contextvars.Context(), func)

    def _start(self, context: contextvars.Context, call: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._crew is None:
                self._crew = _Crew(self._name, self._size())
            self._crew.take(partial(_settle, future, partial(context.run, call)))
        return future

    async def run(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``func`` on a thread of the pool as ``submit`` does, and return its result.

        A caller that is cancelled stops waiting; a ``func`` that has started still runs to its end.
        """
        return await asyncio.wrap_future(self.submit(func, *args, **kwargs))

    def close(self) -> None:
        """Wait for the work submitted so far, then end the threads and close their connections.

        The next submission starts new ones.
        """
        with self._lock:
            crew, self._crew = self._crew, None
        if crew is not None:
            crew.end()


def close_database_threads() -> None:
    """Wait for the work of every pool of this process, then end their threads and close their connections."""
    for pool in list(_pools):
        pool.close()


def call_on_loop(loop: asyncio.AbstractEventLoop, func: Callable[..., object], *args: Any) -> bool:
    """Schedule ``func`` on the thread of ``loop``; return ``False`` where the loop is closed and no caller waits."""
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
