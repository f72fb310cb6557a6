"""Results that a function leaves to be computed later: they keep the scope of the function, or are refused."""

from __future__ import annotations

from asyncio import isfuture
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from inspect import isasyncgen, isawaitable, iscoroutine, isgenerator
from io import IOBase
from typing import Any, Final

from django.db.models import QuerySet

from vskill.errors import VskillError
from vskill.worker_scope import Scope, entered


class ResultUnfinished(VskillError):
    """A function returned what would be computed after its scope, possibly in the scope of another environment."""

    code = "result_unfinished"


@contextmanager
def _plain() -> Iterator[None]:
    yield


@asynccontextmanager
async def _asynchronous() -> AsyncIterator[None]:
    yield


# What the two decorators make. Its body runs where it is entered, and between that and its end is the caller's code.
_CONTEXT_MANAGERS: Final = (type(_plain()), type(_asynchronous()))


def kept_in(scope: Scope, result: Any, *, awaited: bool) -> Any:
    """Return an equivalent of ``result`` that is in ``scope`` whenever it computes something.

    ``scope`` is the scope in which a function returned ``result``. The equivalent of an awaitable is a coroutine, and
    that of an iterator a generator, each plain or async. Closes the scope and returns ``result`` itself where nothing
    is left to compute; ``awaited`` says that this includes a task, because the function was a coroutine and awaited
    what it needs. Raises ``ResultUnfinished`` for what can neither keep the scope nor do without it.
    """
    if isgenerator(result):
        return _iterate_in(scope, result)
    if isasyncgen(result):
        return _aiterate_in(scope, result)
    if isawaitable(result) and not (awaited and isfuture(result)):
        return await_in(scope, lambda: result)
    # A file runs no code of its caller while it reads, and has other methods.
    if isinstance(result, Iterator) and not isinstance(result, IOBase):
        return _iterate_in(scope, _each(result))
    if isinstance(result, AsyncIterator):
        return _aiterate_in(scope, _aeach(result))
    scope.closed = True
    _refuse_unfinished(scope, result)
    return result


async def await_in(scope: Scope, begin: Callable[[], Awaitable[Any]]) -> Any:
    """Await what ``begin()`` returns, in ``scope``, and return its result as ``kept_in`` does."""
    try:
        with entered(scope):
            result = await begin()
    except BaseException:
        scope.closed = True
        raise
    return kept_in(scope, result, awaited=True)


def _each(iterator: Iterator[Any]) -> Generator[Any, Any, Any]:
    return (yield from iterator)


async def _aeach(iterator: AsyncIterator[Any]) -> AsyncGenerator[Any, Any]:
    try:
        async for item in iterator:
            yield item
    finally:
        await end(iterator)


async def end(iterator: object) -> bool:
    """Close an async iterator that can be closed, and return ``True``; ``False`` where it is being closed already.

    Where the collector finds an async generator and the one that iterates over it, the event loop closes each of them.
    """
    if getattr(iterator, "ag_running", False):
        return False
    if aclose := getattr(iterator, "aclose", None):
        await aclose()
    return True


def _iterate_in(scope: Scope, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    # A generator has no context of its own. Each step runs in the context of the code that requests the next item, so
    # the scope is entered for each step only, and that code does not see it between two steps.
    step = partial(next, generator)
    try:
        while True:
            with entered(scope):
                try:
                    item = step()
                except StopIteration as stop:
                    return stop.value
            try:
                step = partial(generator.send, (yield item))
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - it is for the generator, which is told here
                step = partial(generator.throw, error)
    finally:
        with entered(scope):
            generator.close()
        scope.closed = True


async def _aiterate_in(scope: Scope, generator: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    step = partial(anext, generator)
    try:
        while True:
            with entered(scope):
                try:
                    item = await step()
                except StopAsyncIteration:
                    return
            try:
                step = partial(generator.asend, (yield item))
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - it is for the generator, which is told here
                step = partial(generator.athrow, error)
    finally:
        with entered(scope):
            ended = await end(generator)
        scope.closed = ended


def _refuse_unfinished(scope: Scope, result: Any) -> None:
    """Raise ``ResultUnfinished`` for a result that is lazy in itself, or a collection of such; end what is in it."""
    if isinstance(result, dict):
        parts: Iterable[Any] = result.values()
    elif isinstance(result, (list, tuple, set, frozenset)):
        parts = result
    else:
        parts = ()
    if _is_lazy(result):
        found = f"a {type(result).__name__}"
    elif unfinished := [part for part in parts if _is_lazy(part) or _is_a_step(part)]:
        found = f"a {type(result).__name__} that holds a {type(unfinished[0]).__name__}"
        for part in unfinished:
            # Python warns of a coroutine that nobody awaits.
            if iscoroutine(part) or isgenerator(part):
                part.close()
    else:
        return
    raise ResultUnfinished(
        f"The function returned {found}, which would be computed after the scope of environment {scope.env.name!r}. "
        "What it did is kept, but its result is refused. Compute the result inside the function (await it, make a list "
        "of it), or return a generator or a coroutine alone, which keeps the scope."
    )


def _is_lazy(value: Any) -> bool:
    # A queryset chooses its database when it is read.
    return isinstance(value, _CONTEXT_MANAGERS) or (isinstance(value, QuerySet) and value._result_cache is None)


def _is_a_step(value: Any) -> bool:
    # A task is none: it runs in a context of its own.
    return (isawaitable(value) and not isfuture(value)) or (
        isinstance(value, (Iterator, AsyncIterator)) and not isinstance(value, IOBase)
    )
