"""What a consumer has in flight, and who may have the batches that are free.

Nobody knows which work will be slow before it is, so a share of the batches is kept for whoever has nothing in flight:
one for each environment without a batch, and the last two for publishers without a message in work. The very last one
is for hosts without any, because the work of all owners of a slow host is slow. Messages without a publisher fetch
nothing, and are kept from no batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Final

from submissions.queue.base import Message, MessageBatch
from submissions.queue.settlement import Handler, Handlers

_Task = asyncio.Task[Any]
# A consumer with fewer batches keeps one of them; two would cost a publisher that is alone too much of its speed.
_KEEPS_TWO_FROM: Final = 8
# A look for newcomers that found nobody is repeated no sooner. With quick work there would be one for every batch, for
# nothing: the batches that are for anybody become free all the time.
LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True)
class Share:
    """How many batches an environment may take now, and which publishers are left out of them."""

    batches: int
    without: frozenset[str] = frozenset()


@dataclass
class _InFlight:
    environment: str
    messages: set[Message]


class BatchesInFlight:
    """The batches that one consumer has in flight, at most ``places``."""

    def __init__(self, places: int, *, keeps: bool, changed: Callable[[], None]) -> None:
        """Count batches and the messages in work in them.

        ``places`` is how many batches may be in flight. With ``keeps`` some are kept for newcomers. ``changed`` is
        called when there may be more to take than before.
        """
        self._places: Final = places
        self._kept: Final = (2 if places >= _KEEPS_TWO_FROM else min(1, places - 1)) if keeps else 0
        self._changed: Final = changed
        self._batches: dict[_Task, _InFlight] = {}
        # By environment: who was left out when nobody was found, and until when that counts; and the looks put off.
        self._nobody: dict[str, tuple[frozenset[str], float]] = {}
        self._put_off: dict[str, float] = {}

    @property
    def tasks(self) -> set[_Task]:
        """Return the tasks that handle the batches."""
        return set(self._batches)

    @property
    def free(self) -> int:
        """Return how many more batches may be in flight."""
        return self._places - len(self._batches)

    def begin(self, task: _Task, batch: MessageBatch) -> None:
        """Count ``batch`` until ``task``, which handles it, has ended."""
        self._batches[task] = _InFlight(batch.environment, {*batch.messages, *batch.parked})
        task.add_done_callback(self._end)

    def _end(self, task: _Task) -> None:
        self._batches.pop(task, None)
        self._changed()

    def counted(self, handlers: Handlers) -> Handlers:
        """Return ``handlers`` by which a message counts until its work has ended, not until its batch has."""
        return {kind: Handler(partial(self._run, one.run), one.on_parked) for kind, one in handlers.items()}

    async def _run(self, run: Callable[[Message], Awaitable[None]], message: Message) -> None:
        try:
            await run(message)
        finally:
            self._message_ended(message)

    def _message_ended(self, message: Message) -> None:
        for batch in self._batches.values():
            if message in batch.messages:
                batch.messages.remove(message)
                # Its publisher may be a newcomer again, to whom a batch that is free now belongs.
                waited_for = batch.messages and 0 < self.free <= self._kept
                if waited_for and message.publisher not in self._publishers(message.environment):
                    self._changed()
                return

    def _publishers(self, environment: str) -> set[str]:
        batches = [batch for batch in self._batches.values() if batch.environment == environment]
        return {message.publisher for batch in batches for message in batch.messages if message.publisher}

    def share(self, environment: str, environments: Sequence[str]) -> Share:
        """Return what ``environment`` may take now; ``environments`` are all that this consumer serves.

        Each other one without a batch keeps a free one. One is for whoever comes first where there are fewer batches
        than environments. Of those that are left, the last are for publishers without anything in work here.
        """
        self._put_off.pop(environment, None)
        busy = {batch.environment for batch in self._batches.values()}
        kept = sum(other not in busy for other in environments if other != environment)
        free = max(self.free - kept, 0 if environment in busy else min(self.free, 1))
        if free > self._kept:
            return Share(free - self._kept)
        without = frozenset(self._publishers(environment))
        if free == 1 < self._kept:
            without = frozenset(publisher.partition("/")[0] for publisher in without)
        nobody, until = self._nobody.get(environment, (without, 0.0))
        if free and nobody <= without and monotonic() < until:
            self._put_off[environment] = until
            return Share(0, without)
        # One at a time: whoever takes it has something in work then.
        return Share(min(free, 1), without)

    def found_nobody(self, environment: str, share: Share) -> None:
        """Put off the next look for newcomers, unless it leaves out fewer than this ``share``, which found nobody."""
        if share.without:
            self._nobody[environment] = (share.without, monotonic() + LOOK_SECONDS)

    @property
    def seconds_until_look(self) -> float:
        """Return when a look for newcomers that was put off is due, infinity where none was."""
        return max(0.0, min(self._put_off.values(), default=inf) - monotonic())
