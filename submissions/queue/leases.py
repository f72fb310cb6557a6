"""Renew the leases of the messages in work, and cancel the work of a lease that is lost.

A worker that cannot renew must stop before its lease ends. It goes by its own monotonic clock: the moment before the
last successful renewal was asked for, plus the lease, less a margin.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, Self

from django.conf import settings

from submissions.queue.base import Message, MessageBatch, Queue

logger = logging.getLogger(__name__)

# The part of a lease that is left when a worker that cannot renew stops: time for its last statement to end.
MARGIN: Final = 0.15


@dataclass(eq=False)
class _Held:
    message: Message
    queue: Queue
    task: asyncio.Task[Any]
    deadline: float
    lost: bool = False


def _deadline(asked_at: float) -> float:
    return asked_at + float(settings.QUEUE_LEASE) * (1 - MARGIN)


class LeaseKeeper:
    """Hold the leases of one consumer: ``running`` renews them, ``holding`` ties a message to its task."""

    def __init__(self) -> None:
        # A set and not a mapping by message id, which is unique within one database only.
        self._held: set[_Held] = set()
        self._unsettled: dict[tuple[Queue, str], Message] = {}

    def __len__(self) -> int:
        return len(self._held)

    @contextmanager
    def holding(self, message: Message, queue: Queue, received_at: float) -> Iterator[_Held]:
        """Renew the lease of ``message`` during the body, and cancel the current task if the lease is lost.

        ``message`` was received from ``queue`` by a call that began at ``received_at`` (``time.monotonic``). The value
        of the context has ``lost``, which says whether that happened.
        """
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a lease is held by a task")
        held = _Held(message, queue, task, _deadline(received_at))
        self._held.add(held)
        try:
            yield held
        finally:
            self._held.discard(held)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Renew the leases, and watch their deadlines, during the body."""
        works = (self._renew_for_ever, self._watch_for_ever, self._surrender_for_ever)
        tasks = [asyncio.create_task(work()) for work in works]
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _renew_for_ever(self) -> None:
        while True:
            await asyncio.sleep(settings.QUEUE_HEARTBEAT)
            await self.renew()

    async def _watch_for_ever(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, settings.QUEUE_LEASE * MARGIN / 3))
            self._lose_what_is_late()

    async def _surrender_for_ever(self) -> None:
        while True:
            await asyncio.sleep(settings.QUEUE_POLL_INTERVAL)
            await self.surrender()

    def _lose_what_is_late(self) -> None:
        for held in self._held:
            if monotonic() >= held.deadline:
                self._lose(held, "it could not be renewed in time")

    def surrender_later(self, message: Message, queue: Queue) -> None:
        """Give a message back as soon as its ``queue`` answers again; without that, its worker would count as dead."""
        self._unsettled[queue, message.token] = message

    async def surrender(self) -> None:
        """Try once to give back every message that could not be given back before."""
        for (queue, token), message in list(self._unsettled.items()):
            try:
                await queue.surrender(message)
            except Exception as error:  # noqa: BLE001 - whatever it is, the next turn tries again
                logger.info("message %s can still not be given back: %r", message.id, error)
                return
            del self._unsettled[queue, token]

    async def renew(self) -> None:
        """Renew every lease once; where the database does not answer, the deadlines decide."""
        # After a stall of this process the message may have been leased again, even to this very process.
        self._lose_what_is_late()
        by_queue: dict[Queue, list[_Held]] = {}
        for held in self._held:
            if not held.lost:
                by_queue.setdefault(held.queue, []).append(held)
        await asyncio.gather(*(self._renew(group) for group in by_queue.values()))

    async def _renew(self, group: list[_Held]) -> None:
        asked_at = monotonic()
        try:
            async with asyncio.timeout(settings.QUEUE_LEASE):
                kept = await group[0].queue.extend([held.message for held in group])
        except Exception as error:  # noqa: BLE001 - whatever it is, the deadline decides, and the next beat tries again
            logger.warning("leases could not be renewed, trying again: %s", error)
            return
        for held in group:
            if held.message.id in kept:
                held.deadline = _deadline(asked_at)
            elif held in self._held:
                self._lose(held, "somebody else may have it")

    def _lose(self, held: _Held, reason: str) -> None:
        if not held.lost:
            held.lost = True
            logger.error(
                "lease of message %s (%s) lost, its work stops: %s", held.message.id, held.message.subject, reason
            )
            held.task.cancel()


async def renewed(batch: MessageBatch, queue: Queue, asked_at: float) -> tuple[MessageBatch, float]:
    """Return ``batch`` with leases that are known to be young, and when they were asked for.

    A receive that took long may have granted the leases at its beginning or at its end, so they are renewed once.
    """
    now = monotonic()
    if not batch.messages or now - asked_at < settings.QUEUE_HEARTBEAT:
        return batch, asked_at
    kept = await queue.extend(batch.messages)
    messages = tuple(message for message in batch.messages if message.id in kept)
    return MessageBatch(batch.environment, messages, batch.parked), now
