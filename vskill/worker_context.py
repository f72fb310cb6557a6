"""The current worker environment, which exists only inside a scope.

``run_with_worker_env(env, func)`` is the only way to open a scope. ``worker_scope`` keeps it, and says what holds for
work that was abandoned; ``worker_results`` takes care of results that are computed later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar, overload

from asgiref.sync import iscoroutinefunction

from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.worker_results import await_in, kept_in
from vskill.worker_scope import COLLECTING, Scope, carried_scope, current_scope, entered

T = TypeVar("T")


class WorkerEnvMissing(VskillError):
    """The current environment is needed outside any scope."""

    code = "worker_env_missing"


class EnvClosed(VskillError):
    """The current environment is needed by work that outlived its scope, or by what the garbage collector ends."""

    code = "env_closed"


@overload
def run_with_worker_env(
    env: WorkerEnv, func: Callable[..., Awaitable[T]], /, *args: Any, **kwargs: Any
) -> Coroutine[Any, Any, T]: ...
@overload
def run_with_worker_env(env: WorkerEnv, func: Callable[..., T], /, *args: Any, **kwargs: Any) -> T: ...
def run_with_worker_env(env: WorkerEnv, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Run ``func(*args, **kwargs)`` with ``env`` as the current environment and return its result.

    A plain function runs immediately. Where ``func`` returns an awaitable (a coroutine function, an async view), so
    does this, and the scope lasts until that ends. Where it returns an iterator (a generator, ``map``, an object with
    ``__next__`` or ``__anext__``), plain or async, this returns a generator that has the scope in each of its steps; a
    file is returned as it is. Scopes nest: the outer one is restored after a return, an exception and a cancellation.

    Raises ``ResultUnfinished``, after ``func`` has run, where it returns something else that is computed later: a
    queryset that was not read, an object of ``@contextmanager``, or a collection that holds a coroutine or an iterator.
    What deeper objects hold, and a function that is returned to be called later, is in the scope of whoever uses it.

    Whoever abandons work: a generator that this returned ends in its own scope, and an async generator in the one in
    which it began. In a ``__del__``, or the ``finally`` of any other generator, the environment is refused while the
    garbage collector runs it, as nothing tells then whose it is. Where the last reference is dropped without the
    collector, Python calls the finalizer like a function, in the scope of the code that dropped it.
    """
    scope = Scope(env)
    if iscoroutinefunction(func):
        # func is called when the coroutine is awaited, so that a task that is cancelled before its first step leaves
        # nothing behind that was never awaited.
        return await_in(scope, partial(func, *args, **kwargs))
    try:
        with entered(scope):
            result = func(*args, **kwargs)
    except BaseException:
        scope.closed = True
        raise
    return kept_in(scope, result, awaited=False)


def _closed(scope: Scope) -> EnvClosed:
    if scope is COLLECTING:
        return EnvClosed(
            "The garbage collector ends this, at a moment when any environment may be current. "
            "Close it where it is used (closing, aclosing, with), or let it keep the values that its end needs."
        )
    return EnvClosed(
        f"The scope of environment {scope.env.name!r} has ended; "
        "work that outlives its batch must open a scope of its own."
    )


def get_worker_env() -> WorkerEnv | None:
    """Return the environment of the current scope, or ``None`` outside any.

    Raises ``EnvClosed`` in work that was started inside a scope and still runs after the scope has ended, and in what
    the garbage collector ends.
    """
    scope = current_scope()
    if scope is None:
        return None
    if scope.closed:
        raise _closed(scope)
    return scope.env


def refuse_closed_scope() -> None:
    """Raise ``EnvClosed`` in work that outlived its scope; cheap enough to be called for every read."""
    scope = carried_scope()
    if scope is not None and scope.closed:
        raise _closed(scope)


def require_worker_env() -> WorkerEnv:
    """Return the environment of the current scope; raise ``WorkerEnvMissing`` outside any."""
    env = get_worker_env()
    if env is None:
        raise WorkerEnvMissing("There is no current environment: run this inside run_with_worker_env(env, ...).")
    return env
