"""Threads of our own for database work, each with a connection of its own.

Django's async ORM sends every query of a process through one thread, so gathered reads wait for one another. Work that
is handed to these threads overlaps. A thread keeps its connection from one piece of work to the next and gives it back
as soon as nothing is left to do; after the last piece that is before its result can be seen.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.core.signals import setting_changed
from django.db import connections

from vskill.worker_context import get_worker_env

P = ParamSpec("P")
T = TypeVar("T")


def _give_connections_back(*, after_errors_only: bool) -> None:
    for connection in connections.all(initialized_only=True):
        if connection.errors_occurred or not after_errors_only:
            connection.close()


class DatabaseThreads:
    """A bounded pool of threads for one kind of database work.

    ``size`` reads how many threads there may be when the pool is first used, so that settings are not read at import.
    """

    def __init__(self, name: str, size: Callable[[], int]) -> None:
        self._name = name
        self._size = size
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

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
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self._size(), thread_name_prefix=self._name)
            self._work.put(partial(self._settle, future, partial(context.run, call)))
            # One turn for each piece of work: a turn that finds nothing left ends at once.
            self._executor.submit(self._take_turn)
        return future

    def _take_turn(self) -> None:
        while True:
            try:
                work = self._work.get_nowait()
            except queue.Empty:
                # Another thread took the work for which this one had kept its connection.
                _give_connections_back(after_errors_only=False)
                return
            work()

    def _settle(self, future: Future[T], call: Callable[[], T]) -> None:
        if not future.set_running_or_notify_cancel():
            self._after_work()
            return
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - it is raised again where the result is awaited
            self._after_work()
            future.set_exception(error)
        else:
            self._after_work()
            future.set_result(result)

    def _after_work(self) -> None:
        _give_connections_back(after_errors_only=not self._work.empty())

    async def run(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Await ``func`` on a thread of the pool.

        A caller that is cancelled stops waiting; a statement that has begun still ends, and its connection is given
        back.
        """
        return await asyncio.wrap_future(self.submit(func, *args, **kwargs))

    def close(self) -> None:
        """End the threads after the work that was handed to them; the next call starts new ones."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=True)


readers = DatabaseThreads("kv-read", lambda: int(settings.KV_READ_WORKERS))
writers = DatabaseThreads("kv-write", lambda: int(settings.KV_WRITE_WORKERS))


def _resize(*, setting: str, **_kwargs: Any) -> None:
    if setting == "KV_READ_WORKERS":
        readers.close()
    if setting == "KV_WRITE_WORKERS":
        writers.close()


setting_changed.connect(_resize, dispatch_uid="vskill.kv.threads")
