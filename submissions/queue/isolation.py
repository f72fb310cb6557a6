"""One last chance at a time, and where: in a process of its own, or here."""

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

Apart = Callable[[WorkerEnv], Awaitable[None]]


class LastChances:
    """The messages that one more crash would park, as one consumer takes them.

    ``only`` asks for them whenever it is asked; otherwise that is done once a poll, because there is hardly ever one.
    ``apart`` works them off elsewhere, so that none of them dies with another's process.
    """

    def __init__(self, worker: str, *, only: bool, apart: Apart | None) -> None:
        self._worker: Final = worker
        self._only: Final = only
        self._apart: Final = apart
        self._here: asyncio.Task[None] | None = None
        self._elsewhere: asyncio.Task[None] | None = None
        self._ask_again_at: dict[str, float] = {}

    async def receive(self, env: WorkerEnv) -> MessageBatch:
        """Return the next one, or nothing while there is none, while another is worked on, or where they are worked
        off apart."""
        nothing = MessageBatch(env.name)
        if self.apart or not (self._here is None or self._here.done()):
            return nothing
        if monotonic() < self._ask_again_at.get(env.name, 0.0) and not self._only:
            return nothing
        self._ask_again_at[env.name] = monotonic() + settings.QUEUE_POLL_INTERVAL
        if self._apart is None:
            return await get_queue(env).receive(env.name, 1, worker=self._worker, last_chance=True)
        if await get_queue(env).has_last_chance(env.name):
            self._elsewhere = asyncio.create_task(self._work_apart(env, self._apart))
        return nothing

    def worked_on_by(self, task: asyncio.Task[None]) -> None:
        """Take no other until ``task``, which works here on the one that was received, has ended."""
        self._here = task

    @property
    def apart(self) -> set[asyncio.Task[None]]:
        """Return the task that waits for what is worked off apart, where there is one."""
        return set() if self._elsewhere is None or self._elsewhere.done() else {self._elsewhere}

    async def end(self) -> None:
        """Stop what is worked off apart; what is worked on here ends with the other batches."""
        for task in self.apart:
            task.cancel()
            await asyncio.wait([task])

    async def _work_apart(self, env: WorkerEnv, apart: Apart) -> None:
        try:
            await apart(env)
        except Exception:
            logger.exception("last chances of %s could not be worked off apart; the next poll tries again", env.name)
