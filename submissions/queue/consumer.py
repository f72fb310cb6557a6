"""Take batches from the queue and settle each message alone, each batch under its own worker environment."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Final

from django.conf import settings

from submissions.queue.base import InvalidMessage, Message, MessageBatch, Queue
from submissions.queue.database import get_queue
from submissions.queue.leases import LeaseKeeper
from submissions.queue.pause import get_pause
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.worker_context import run_with_worker_env

logger = logging.getLogger(__name__)

JITTER: Final = 0.2


@dataclass(frozen=True)
class Handler:
    """What is done with messages of one kind.

    ``run`` does the work; ``give_up`` is told, with the reason, that a message was parked and will not come again by
    itself.
    """

    run: Callable[[Message], Awaitable[None]]
    give_up: Callable[[Message, str], Awaitable[None]]


Handlers = Mapping[str, Handler]


@dataclass
class BatchReport:
    """How the messages of batches ended, each counted once."""

    ends: Counter[str] = field(default_factory=Counter)

    def add(self, end: str) -> None:
        """Count one end."""
        self.ends[end] += 1

    def __str__(self) -> str:
        return ", ".join(f"{count} {end}" for end, count in sorted(self.ends.items())) or "nothing"


def backoff(errors: int) -> timedelta:
    """Return how long a message waits after its ``errors``-th error (from 1), with jitter so that failures do not
    march in step."""
    steps = settings.QUEUE_BACKOFF
    seconds = steps[min(errors, len(steps)) - 1]
    return timedelta(seconds=seconds * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311 - spreads load, hides nothing


async def handle_submission_queue(
    batch: MessageBatch,
    env: WorkerEnv,
    *,
    handlers: Handlers,
    keeper: LeaseKeeper | None = None,
    received_at: float | None = None,
) -> BatchReport:
    """Handle one batch of one environment and report how each message ended.

    While the queue is paused the batch is given back. Otherwise all of it runs inside ``run_with_worker_env``;
    messages run concurrently and settle alone: done, retried, parked, or lost to another worker.
    """
    queue = get_queue(env)
    report = BatchReport()
    if await get_pause(env) is not None:
        for message in batch.messages:
            await queue.release(message)
            report.add("given back")
        return report
    started = monotonic() if received_at is None else received_at
    await run_with_worker_env(env, _handle_batch, batch, queue, handlers, keeper or LeaseKeeper(), started, report)
    return report


async def _handle_batch(
    batch: MessageBatch, queue: Queue, handlers: Handlers, keeper: LeaseKeeper, received_at: float, report: BatchReport
) -> None:
    for message in batch.abandoned:
        if (handler := handlers.get(message.kind)) is not None:
            await handler.give_up(message, f"its worker did not come back {settings.QUEUE_MAX_CRASHES} times")
        report.add("parked")
    tasks = [
        asyncio.create_task(_settle(message, queue, handlers, keeper, received_at), name=f"message-{message.id}")
        for message in batch.messages
    ]
    try:
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    except asyncio.CancelledError:
        # gather has cancelled the messages; each gives itself back before this batch may end.
        await asyncio.wait(tasks)
        raise
    for message, end in zip(batch.messages, ends, strict=True):
        if isinstance(end, str):
            report.add(end)
        else:
            report.add("unsettled")
            if not isinstance(end, asyncio.CancelledError):
                logger.error("message %s was not settled and comes back after its lease: %r", message.id, end)


async def _settle(message: Message, queue: Queue, handlers: Handlers, keeper: LeaseKeeper, received_at: float) -> str:
    with keeper.holding(message, queue, received_at) as held:
        try:
            handler = handlers.get(message.kind)
            if handler is None:
                raise InvalidMessage(f"No handler knows messages of the kind {message.kind!r}.")
            async with asyncio.timeout(settings.QUEUE_MESSAGE_LIMIT):
                await handler.run(message)
        except asyncio.CancelledError:
            if held.lost:
                return "lost"
            await asyncio.shield(queue.release(message))
            raise
        except InvalidMessage as error:
            logger.error("message %s was parked: %s", message.id, error)
            await queue.park(message, str(error))
            return "parked"
        except Exception as error:  # noqa: BLE001 - settling alone means that no error of one message leaves it
            return await _after_error(message, queue, handlers[message.kind], error)
        return "done" if await queue.acknowledge(message) else "lost"


async def _after_error(message: Message, queue: Queue, handler: Handler, error: Exception) -> str:
    if isinstance(error, TimeoutError):
        reason = f"no end within {settings.QUEUE_MESSAGE_LIMIT:g} s"
    else:
        reason = str(error) if isinstance(error, VskillError) else f"{type(error).__name__}: {error}"
    errors = message.errors + 1
    if errors < settings.QUEUE_MAX_ERRORS:
        delay = backoff(errors)
        logger.warning(
            "message %s (%s) again in %.0f s: %s", message.id, message.subject, delay.total_seconds(), reason
        )
        return "retried" if await queue.retry_later(message, reason, delay) else "lost"
    logger.error(
        "message %s (%s) parked after %d errors: %s", message.id, message.subject, errors, reason, exc_info=error
    )
    if not await queue.park(message, reason):
        return "lost"
    await handler.give_up(message, reason)
    return "parked"


@dataclass(frozen=True)
class ConsumerOptions:
    """How a consumer takes work. ``once``: one batch of each environment; ``drain``: until nothing is left, delayed
    work too."""

    max_batch_size: int
    max_concurrency: int
    worker: str
    once: bool = False
    drain: bool = False


class Consumer:
    """Several batches in flight, of several environments in turn."""

    def __init__(self, environments: list[WorkerEnv], handlers: Handlers, options: ConsumerOptions) -> None:
        self._environments = environments
        self._handlers = handlers
        self._options = options
        self._keeper = LeaseKeeper()
        self._batches: set[asyncio.Task[None]] = set()
        self.report = BatchReport()

    async def run(self, stop: asyncio.Event) -> None:
        """Consume until ``stop`` is set (or, with ``once`` and ``drain``, until done), then finish or give back
        within the grace."""
        keeping = asyncio.create_task(self._keeper.run())
        try:
            await self._consume(stop)
        finally:
            await self._finish(settings.QUEUE_SHUTDOWN_GRACE if stop.is_set() else None)
            keeping.cancel()
            await asyncio.wait([keeping])

    async def _consume(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            took = 0
            for env in self._environments:
                if len(self._batches) < self._options.max_concurrency:
                    took += await self._take(env)
            if self._options.once:
                return
            if self._options.drain and not took and not self._batches and not await self._work_left():
                return
            if not took or len(self._batches) >= self._options.max_concurrency:
                await self._pause(stop)

    async def _pause(self, stop: asyncio.Event) -> None:
        """Wait for a place, for the next poll, or for the order to stop, whichever is first."""
        stopping = asyncio.create_task(stop.wait())
        full = len(self._batches) >= self._options.max_concurrency
        try:
            await asyncio.wait(
                {stopping, *self._batches},
                timeout=None if full else settings.QUEUE_POLL_INTERVAL,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            stopping.cancel()

    async def _take(self, env: WorkerEnv) -> int:
        received_at = monotonic()
        try:
            if await get_pause(env) is not None:
                return 0
            batch = await get_queue(env).receive(
                env.name,
                self._options.max_batch_size,
                worker=self._options.worker,
                fill_wait=timedelta(seconds=settings.QUEUE_MAX_BATCH_WAIT if self._batches else 0),
            )
        except Exception as error:  # noqa: BLE001 - a database that is away must not end the consumer; the next poll asks again
            logger.error("no work could be taken from %s, asking again: %s", env.name, error)
            return 0
        if not batch:
            return 0
        task = asyncio.create_task(self._run_batch(batch, env, received_at))
        self._batches.add(task)
        task.add_done_callback(self._batches.discard)
        return len(batch.messages)

    async def _run_batch(self, batch: MessageBatch, env: WorkerEnv, received_at: float) -> None:
        try:
            report = await handle_submission_queue(
                batch, env, handlers=self._handlers, keeper=self._keeper, received_at=received_at
            )
        except Exception:
            logger.exception("a batch of %s was not handled; its messages come back after their leases", env.name)
            self.report.ends["unsettled"] += len(batch.messages)
            return
        self.report.ends.update(report.ends)

    async def _work_left(self) -> bool:
        for env in self._environments:
            status = await get_queue(env).status(env.name)
            if status.waiting or status.delayed or status.leased:
                return True
        return False

    async def _finish(self, grace: float | None) -> None:
        if not self._batches:
            return
        _done, late = await asyncio.wait(self._batches, timeout=grace)
        for task in late:
            task.cancel()
        if late:
            logger.warning("%d batches did not end within %g s; their messages are given back", len(late), grace)
            await asyncio.wait(late)
