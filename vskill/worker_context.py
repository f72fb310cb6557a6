"""The current worker environment, which exists only inside a scope.

``run_with_worker_env(env, func)`` is the only way to open a scope. The scope is stored in asgiref's ``Local``, which
follows ``await``, tasks and ``sync_to_async``. ``Local`` tags its data with the thread, so a thread that receives a
copied context in another way (``asyncio.to_thread``) would see nothing. The scope is therefore also stored in a
``ContextVar``, which is read where ``Local`` is empty. Both are written together, in one function, and restored
together.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import isasyncgen, isawaitable, isgenerator
from typing import Any, Final, Never, TypeVar, overload

from asgiref.local import Local
from asgiref.sync import iscoroutinefunction

from vskill.environments import WorkerEnv
from vskill.errors import VskillError

T = TypeVar("T")


class WorkerEnvMissing(VskillError):
    """The current environment is needed outside any scope."""

    code = "worker_env_missing"


class EnvClosed(VskillError):
    """The current environment is needed by work that outlived its scope."""

    code = "env_closed"


class _Scope:
    __slots__ = ("closed", "env")

    def __init__(self, env: WorkerEnv) -> None:
        self.env = env
        self.closed = False


_local: Final = Local()
_carried: Final[ContextVar[_Scope | None]] = ContextVar("vskill_worker_env", default=None)


def _current_scope() -> _Scope | None:
    scope: _Scope | None = getattr(_local, "scope", None)
    return scope if scope is not None else _carried.get()


@contextmanager
def _entered(scope: _Scope) -> Iterator[None]:
    previous_local: _Scope | None = getattr(_local, "scope", None)
    previous_carried = _carried.get()
    _local.scope = scope
    _carried.set(scope)
    try:
        yield
    finally:
        # The previous value is restored and the attribute never deleted: older versions of asgiref deleted it in other
        # contexts too.
        _local.scope = previous_local
        _carried.set(previous_carried)


async def _call_in_scope(env: WorkerEnv, func: Callable[..., Awaitable[T]], args: Any, kwargs: Any) -> T:
    # func is called in here and not before, so that a task that is cancelled before its first step leaves no coroutine
    # behind that was never awaited.
    scope = _Scope(env)
    try:
        with _entered(scope):
            return await func(*args, **kwargs)
    finally:
        scope.closed = True


async def _await_in(scope: _Scope, awaitable: Awaitable[T]) -> T:
    try:
        with _entered(scope):
            return await awaitable
    finally:
        scope.closed = True


def _iterate_in(scope: _Scope, generator: Generator[T, Never, Any]) -> Generator[T, None, Any]:
    # A generator has no context of its own. Each step runs in the context of the code that requests the next item, so
    # the scope is entered for each step only, and that code does not see it between two steps.
    try:
        while True:
            with _entered(scope):
                try:
                    item = next(generator)
                except StopIteration as stop:
                    return stop.value
            yield item
    finally:
        with _entered(scope):
            generator.close()
        scope.closed = True


async def _aiterate_in(scope: _Scope, generator: AsyncGenerator[T, Never]) -> AsyncGenerator[T, None]:
    try:
        while True:
            with _entered(scope):
                try:
                    item = await anext(generator)
                except StopAsyncIteration:
                    return
            yield item
    finally:
        with _entered(scope):
            await generator.aclose()
        scope.closed = True


@overload
def run_with_worker_env(
    env: WorkerEnv, func: Callable[..., Awaitable[T]], /, *args: Any, **kwargs: Any
) -> Coroutine[Any, Any, T]: ...
@overload
def run_with_worker_env(env: WorkerEnv, func: Callable[..., T], /, *args: Any, **kwargs: Any) -> T: ...
def run_with_worker_env(env: WorkerEnv, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Run ``func(*args, **kwargs)`` with ``env`` as the current environment and return its result.

    A plain function runs immediately. Where ``func`` returns an awaitable (a coroutine function, an async view), so
    does this, and the scope lasts until that ends. Where it returns a generator, plain or async, this returns one that
    has the scope in each of its steps. Scopes nest: the outer one is restored after a return, an exception and a
    cancellation.
    """
    if iscoroutinefunction(func):
        return _call_in_scope(env, func, args, kwargs)
    scope = _Scope(env)
    goes_on = False
    try:
        with _entered(scope):
            result = func(*args, **kwargs)
        goes_on = isawaitable(result) or isgenerator(result) or isasyncgen(result)
    finally:
        scope.closed = not goes_on
    if isgenerator(result):
        return _iterate_in(scope, result)
    if isasyncgen(result):
        return _aiterate_in(scope, result)
    return _await_in(scope, result) if goes_on else result


def _closed(scope: _Scope) -> EnvClosed:
    return EnvClosed(
        f"The scope of environment {scope.env.name!r} has ended; "
        "work that outlives its batch must open a scope of its own."
    )


def get_worker_env() -> WorkerEnv | None:
    """Return the environment of the current scope, or ``None`` outside any.

    Raises ``EnvClosed`` in work that was started inside a scope and still runs after the scope has ended.
    """
    scope = _current_scope()
    if scope is None:
        return None
    if scope.closed:
        raise _closed(scope)
    return scope.env


def refuse_closed_scope() -> None:
    """Raise ``EnvClosed`` in work that outlived its scope; cheap enough to be called for every read."""
    scope = _carried.get()
    if scope is not None and scope.closed:
        raise _closed(scope)


def require_worker_env() -> WorkerEnv:
    """Return the environment of the current scope; raise ``WorkerEnvMissing`` outside any."""
    env = get_worker_env()
    if env is None:
        raise WorkerEnvMissing("There is no current environment: run this inside run_with_worker_env(env, ...).")
    return env
