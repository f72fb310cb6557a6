"""Coalesce the reads of one turn of the event loop into chunks.

Each caller of ``get()`` awaits its own future and settles on its own; the database gets one select for up to 500 keys.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from itertools import islice
from weakref import WeakKeyDictionary

from django.conf import settings

from vskill.kv.models import AbstractKVEntry
from vskill.kv.outcomes import Outcome, Status
from vskill.kv.probe import probe
from vskill.kv.reader import CHUNK_SIZE, deadline_after, read_chunk
from vskill.kv.threads import call_on_loop, readers

Source = tuple[type[AbstractKVEntry], str, str]
"""The model of a table, the alias of its database, and the namespace within it."""

Waiting = dict[str, list["asyncio.Future[Outcome]"]]
"""The futures that wait for each key; more than one where several callers read the same key."""


def start_chunk(source: Source, keys: Sequence[str], given_up: Callable[[], bool]) -> Future[dict[str, Outcome]]:
    """Start ``read_chunk`` on a reader thread and return the future of its outcomes.

    The caller counts the reads with the probe, from before this call until the outcomes have arrived.
    """
    return readers.submit_shared(partial(read_chunk, *source, keys, given_up=given_up))


def timed_out(key: str, seconds: float) -> Outcome:
    """Return the outcome of a key that was not read within ``seconds``."""
    return Outcome(key, Status.TIMED_OUT, detail=f"no answer within {seconds:g} s")


class ReadBatcher:
    """The reads that were requested in the current turn of one event loop.

    It has no reference to the loop. Batchers are kept in a weak dictionary by loop, and a reference back would keep
    both alive for good.
    """

    def __init__(self) -> None:
        self._waiting: dict[Source, Waiting] = {}

    def load(self, source: Source, key: str) -> asyncio.Future[Outcome]:
        """Add ``key`` of ``source`` to the current turn and return the future of its outcome.

        The outcome is ``TIMED_OUT`` after ``KV_READ_TIMEOUT`` seconds.
        """
        loop = asyncio.get_running_loop()
        waiting = self._waiting.get(source)
        if waiting is None:
            waiting = self._waiting[source] = {}
            loop.call_soon(self._start, source)
        future: asyncio.Future[Outcome] = loop.create_future()
        waiting.setdefault(key, []).append(future)
        return future

    def _start(self, source: Source) -> None:
        loop = asyncio.get_running_loop()
        waiting = self._waiting.pop(source)
        seconds = settings.KV_READ_TIMEOUT
        # Counted before any of them can have been read.
        probe.begin_reads(len(waiting))
        keys = iter(waiting)
        while chunk := list(islice(keys, CHUNK_SIZE)):
            awaited = {key: waiting[key] for key in chunk}
            try:
                reading = start_chunk(source, chunk, partial(_given_up, awaited, deadline_after(seconds)))
            except BaseException as error:  # noqa: BLE001 - it is raised where the outcomes are awaited
                _fail(awaited, error)
                probe.end_reads(len(awaited))
                continue
            timer = loop.call_later(seconds, _time_out, awaited, seconds)
            reading.add_done_callback(partial(_hand_over, loop, awaited, timer))


def _given_up(awaited: Waiting, too_late: Callable[[], bool]) -> bool:
    return too_late() or all(future.done() for futures in awaited.values() for future in futures)


def _hand_over(
    loop: asyncio.AbstractEventLoop,
    awaited: Waiting,
    timer: asyncio.TimerHandle,
    reading: Future[dict[str, Outcome]],
) -> None:
    """Pass the outcomes from the thread of the pool to the thread of the event loop."""
    if not call_on_loop(loop, _settle, awaited, timer, reading):
        probe.end_reads(len(awaited))


def _settle(awaited: Waiting, timer: asyncio.TimerHandle, reading: Future[dict[str, Outcome]]) -> None:
    timer.cancel()
    probe.end_reads(len(awaited))
    if (error := reading.exception()) is not None:
        _fail(awaited, error)
        return
    outcomes = reading.result()
    for key, futures in awaited.items():
        outcome = outcomes[key]
        for future in futures:
            if not future.done():
                future.set_result(outcome)
                # Each further caller gets a copy, so that callers do not see one another's changes to the value.
                outcome = _copied(outcome) if len(futures) > 1 else outcome


def _copied(outcome: Outcome) -> Outcome:
    return replace(outcome, value=copy.deepcopy(outcome.value), metadata=copy.deepcopy(outcome.metadata))


def _fail(awaited: Waiting, error: BaseException) -> None:
    for futures in awaited.values():
        for future in futures:
            if not future.done():
                future.set_exception(error)


def _time_out(awaited: Waiting, seconds: float) -> None:
    for key, futures in awaited.items():
        for future in futures:
            if not future.done():
                future.set_result(timed_out(key, seconds))


_batchers: WeakKeyDictionary[asyncio.AbstractEventLoop, ReadBatcher] = WeakKeyDictionary()


def current_batcher() -> ReadBatcher:
    """Return the batcher of the running event loop."""
    loop = asyncio.get_running_loop()
    batcher = _batchers.get(loop)
    if batcher is None:
        batcher = _batchers[loop] = ReadBatcher()
    return batcher
