"""Threads of our own for database work, each with a connection of its own.

Django's async ORM sends every query of a process through one thread, so gathered reads wait for one another. Work that is handed
to these threads overlaps. Every unit of work ends by giving its connection back: a pool thread would keep it for ever otherwise.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.core.signals import setting_changed
from django.db import close_old_connections

from vskill.worker_context import get_worker_env, run_with_worker_env

P = ParamSpec("P")
T = TypeVar("T")


def _unit(func: Callable[[], T]) -> T:
    try:
        return func()
    finally:
        close_old_connections()


class DatabaseThreads:
    """A bounded pool of threads for one kind of database work.

    ``size`` reads how many threads there may be when the pool is first used, so that settings are not read at import.
    """

    def __init__(self, name: str, size: Callable[[], int]) -> None:
        self._name = name
        self._size = size
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None

    def submit(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run ``func`` on a thread of the pool, in a copy of the caller's context and its worker environment."""
        env = get_worker_env()
        call: Callable[[], T] = partial(func, *args, **kwargs)
        if env is not None:
            call = partial(run_with_worker_env, env, call)
        return self._start(contextvars.copy_context(), call)

    def submit_shared(self, func: Callable[[], T]) -> Future[T]:
        """Run ``func``, which serves several callers at once and so belongs to the context of none of them."""
        return self._start(contextvars.Context(), func)

    def _start(self, context: contextvars.Context, call: Callable[[], T]) -> Future[T]:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self._size(), thread_name_prefix=self._name)
            return self._executor.submit(context.run, _unit, call)

    async def run(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Await ``func`` on a thread of the pool.

        A caller that is cancelled stops waiting; a statement that has begun still ends, and its connection is given back.
        """
        return await asyncio.wrap_future(self.submit(func, *args, **kwargs))

    def close(self) -> None:
        """End the threads after the work that has begun; the next call starts new ones."""
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
