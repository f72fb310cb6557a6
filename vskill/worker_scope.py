"""Where the scope of a worker environment is kept, and which scope abandoned work is ended in.

A scope is stored in asgiref's ``Local``, which follows ``await``, tasks and ``sync_to_async``. ``Local`` tags its data
with the thread, so a thread that receives a copied context in another way (``asyncio.to_thread``) would see nothing.
The scope is therefore also stored in a ``ContextVar``, which is read where ``Local`` is empty. Both are written
together, in one function, and restored together.

Python ends abandoned work at a moment of its own choice, in the context of whoever is running then:

* The garbage collector runs finalizers in the middle of any code. In its thread ``COLLECTING`` is current until it is
  done, a scope that is closed: a ``__del__``, or the ``finally`` of a generator, is refused the environment of the
  code that was interrupted.
* The event loop ends an abandoned async generator in a task of its own. That task gets the scope that the generator
  began in.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import get_ident
from typing import Any, Final

from asgiref.local import Local

from vskill.environments import WorkerEnv


class Scope:
    """One scope of ``env``; it is closed when the work that it was opened for has ended."""

    __slots__ = ("closed", "env")

    def __init__(self, env: WorkerEnv) -> None:
        self.env = env
        self.closed = False


class _Collection:
    """The garbage collection that is under way: its thread, 0 for none, and the scope that is current there.

    There is one at a time in a process. It does not touch the variables of the context that it interrupts: Python 3.11
    collects while it copies or changes these, and would go on with memory that the change had freed.
    """

    __slots__ = ("scope", "thread")

    def __init__(self) -> None:
        self.thread = 0
        self.scope: Scope | None = None

    def __call__(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self.scope = COLLECTING
            self.thread = get_ident()
        else:
            self.thread = 0


COLLECTING: Final = Scope(WorkerEnv(name="garbage collector"))
COLLECTING.closed = True

_local: Final = Local()
_carried: Final[ContextVar[Scope | None]] = ContextVar("vskill_worker_env", default=None)
_collection: Final = _Collection()
gc.callbacks.append(_collection)


def current_scope() -> Scope | None:
    """Return the scope that the running code is in, or ``None`` outside any."""
    if _collection.thread and _collection.thread == get_ident():
        return _collection.scope
    scope: Scope | None = getattr(_local, "scope", None)
    return scope if scope is not None else _carried.get()


def carried_scope() -> Scope | None:
    """Return what ``current_scope`` does, at a small part of its cost, but without what ``Local`` alone carries."""
    if _collection.thread and _collection.thread == get_ident():
        return _collection.scope
    return _carried.get()


@contextmanager
def entered(scope: Scope | None) -> Iterator[None]:
    """Make ``scope`` the current one during the body."""
    if _collection.thread == get_ident():
        interrupted, _collection.scope = _collection.scope, scope
        try:
            yield
        finally:
            _collection.scope = interrupted
        return
    _keep_scopes_of_async_generators()
    previous_local: Scope | None = getattr(_local, "scope", None)
    previous_carried = _carried.get()
    _write(scope, scope)
    try:
        yield
    finally:
        # A coroutine that was dropped while it waited is ended in the context of whoever dropped it, whose own scope
        # must stay.
        if carried_scope() is scope:
            # The previous value is restored and the attribute never deleted: older versions of asgiref deleted it in
            # other contexts too.
            _write(previous_local, previous_carried)


def _write(local: Scope | None, carried: Scope | None) -> None:
    _local.scope = local
    _carried.set(carried)


class _Finalizer:
    """The hook that ends one abandoned async generator, in the scope in which the generator began."""

    __slots__ = ("_finalizer", "scope")

    def __init__(self, finalizer: Callable[[AsyncGenerator[Any, Any]], Any]) -> None:
        self._finalizer = finalizer
        self.scope: Scope | None = None

    def __call__(self, generator: AsyncGenerator[Any, Any]) -> None:
        copy_context().run(self._end, generator)

    def _end(self, generator: AsyncGenerator[Any, Any]) -> None:
        # The event loop's own hook schedules a task, which copies this context.
        _write(self.scope, self.scope)
        self._finalizer(generator)


def _keep_scopes_of_async_generators() -> None:
    """Let the event loop of this thread end abandoned async generators in their own scopes; it restores its hooks."""
    firstiter, finalizer = sys.get_asyncgen_hooks()
    if finalizer is None or isinstance(finalizer, _Finalizer):
        return

    def begin(generator: AsyncGenerator[Any, Any]) -> None:
        # A generator takes the finalizer that is set before it calls this. So each gets one of its own, which learns
        # here whose it is, and the next one is laid out.
        mine = sys.get_asyncgen_hooks().finalizer
        if isinstance(mine, _Finalizer):
            mine.scope = current_scope()
            sys.set_asyncgen_hooks(finalizer=_Finalizer(finalizer))
        if firstiter is not None:
            firstiter(generator)

    sys.set_asyncgen_hooks(firstiter=begin, finalizer=_Finalizer(finalizer))
