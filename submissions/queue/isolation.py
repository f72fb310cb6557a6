"""Isolate messages that one more crash of their worker would park.

Such a message may be what kills its workers, or it may only have shared a process with the one that does. Alone in a
process it shows which: a worker that dies there was killed by this message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

from django.conf import settings

from submissions.queue.base import MessageBatch
from submissions.queue.database import get_queue
from vskill.environments import WorkerEnv

logger = logging.getLogger(__name__)

RunIsolated = Callable[[WorkerEnv], Awaitable[None]]
"""Handle the isolated messages of one environment in another process, and return when that process has ended."""


class IsolatedMessages:
    """The isolated messages that one consumer takes, one at a time.

    ``only`` looks for them whenever it is asked; otherwise there is one look for each poll interval, because there is
    hardly ever such a message. ``run_isolated`` handles them in another process; without it they are received here.
    """

    def __init__(self, worker: str, *, only: bool, run_isolated: RunIsolated | None) -> None:
        self._worker: Final = worker
        self._only: Final = only
        self._run_isolated: Final = run_isolated
        self._here: asyncio.Task[None] | None = None
        self._elsewhere: asyncio.Task[None] | None = None
        self._next_look: dict[str, float] = {}

    async def receive(self, env: WorkerEnv) -> MessageBatch:
        """Return the next isolated message.

        The batch is empty where there is none, while another one is being handled, and where they are handled in
        another process, which this call then starts.
        """
        nothing = MessageBatch(env.name)
        if self.running or not (self._here is None or self._here.done()):
            return nothing
        if monotonic() < self._next_look.get(env.name, 0.0) and not self._only:
            return nothing
        self._next_look[env.name] = monotonic() + settings.QUEUE_POLL_INTERVAL
        if self._run_isolated is None:
            return await get_queue(env).receive(env.name, 1, worker=self._worker, isolated=True)
        if await get_queue(env).has_isolated(env.name):
            self._elsewhere = asyncio.create_task(self._handle_elsewhere(env, self._run_isolated))
        return nothing

    def handled_by(self, task: asyncio.Task[None]) -> None:
        """Take no other isolated message until ``task``, which handles the received one here, has ended."""
        self._here = task

    @property
    def running(self) -> set[asyncio.Task[None]]:
        """Return the task that waits for the other process, or an empty set."""
        return set() if self._elsewhere is None or self._elsewhere.done() else {self._elsewhere}

    async def end(self) -> None:
        """Stop the other process; a message that is handled here ends with the other batches."""
        for task in self.running:
            task.cancel()
            await asyncio.wait([task])

    async def _handle_elsewhere(self, env: WorkerEnv, run_isolated: RunIsolated) -> None:
        try:
            await run_isolated(env)
        except Exception:
            logger.exception("isolated messages of %s could not be handled; the next poll tries again", env.name)
