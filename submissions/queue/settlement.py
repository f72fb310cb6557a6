"""Work on one message under its lease, and settle it: done, retried, parked, given back, or lost to another worker."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar

from django.conf import settings

from submissions.queue.base import InvalidMessage, Message, Queue
from submissions.queue.leases import LeaseKeeper
from vskill.errors import VskillError
from vskill.work_limits import work_limit

logger = logging.getLogger(__name__)

T = TypeVar("T")

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


async def work_on(message: Message, queue: Queue, handlers: Handlers, keeper: LeaseKeeper, received_at: float) -> str:
    """Handle one message and return how it ended; whatever its handler raises ends here.

    Cancelled, it gives the message back, or ends the settling that was begun, and raises ``CancelledError``.
    """
    failure: Exception | None = None
    stopped: asyncio.CancelledError | None = None
    with keeper.holding(message, queue, received_at) as held:
        try:
            await _run(message, handlers)
        except asyncio.CancelledError as error:
            stopped = error
        except Exception as error:  # noqa: BLE001 - settling alone means that no error of one message leaves it
            failure = error
    # Settled outside the lease's keeping: a renewal at this moment would find no message and take it for lost.
    if held.lost:
        # Its lease ended because it could not be renewed, and not because this worker died: nobody is to count a crash.
        await _to_its_end(message, _give_back(message, queue.surrender))
        return "lost"
    if stopped is not None:
        await given_back(message, queue)
        raise stopped
    if failure is None:
        return "done" if await _to_its_end(message, queue.acknowledge(message)) else "lost"
    return await _to_its_end(message, _settle_failure(message, queue, handlers, failure))


async def _to_its_end(message: Message, settling: Awaitable[T]) -> T:
    """Await what has been decided; cancelled meanwhile, wait for it all the same and raise ``CancelledError`` then.

    Whoever cancels gives up waiting by a time of its own, and a second cancellation is obeyed at once.
    """
    ending = asyncio.ensure_future(settling)
    try:
        return await asyncio.shield(ending)
    except asyncio.CancelledError:
        await asyncio.wait([ending])
        if not ending.cancelled() and (error := ending.exception()) is not None:
            logger.error("message %s was not settled and comes back after its lease: %s", message.id, error)
        raise


async def given_back(message: Message, queue: Queue) -> str:
    """Give a message back and return how that ended; cancelled, do it all the same."""
    return await _to_its_end(message, _give_back(message, queue.release))


async def _give_back(message: Message, give_back: Callable[[Message], Awaitable[bool]]) -> str:
    try:
        return "given back" if await give_back(message) else "lost"
    except Exception as error:  # noqa: BLE001 - whatever it is, the end of the lease brings the message back
        logger.warning("message %s comes back as that of a worker that died: %s", message.id, error)
        return "unsettled"


async def _settle_failure(message: Message, queue: Queue, handlers: Handlers, failure: Exception) -> str:
    if isinstance(failure, InvalidMessage):
        return await _park(message, queue, handlers, str(failure))
    return await _after_error(message, queue, handlers, failure)


async def _run(message: Message, handlers: Handlers) -> None:
    handler = handlers.get(message.kind)
    if handler is None:
        raise InvalidMessage(f"No handler knows messages of the kind {message.kind!r}.")
    async with work_limit(settings.QUEUE_MESSAGE_LIMIT):
        await handler.run(message)


async def _after_error(message: Message, queue: Queue, handlers: Handlers, error: Exception) -> str:
    reason = str(error) if isinstance(error, VskillError) else f"{type(error).__name__}: {error}"
    errors = message.errors + 1
    if errors >= settings.QUEUE_MAX_ERRORS:
        logger.error("message %s (%s) failed %d times", message.id, message.subject, errors, exc_info=error)
        return await _park(message, queue, handlers, reason)
    delay = backoff(errors)
    if not await queue.retry_later(message, reason, delay):
        return "lost"
    logger.warning("message %s (%s) again in %.0f s: %s", message.id, message.subject, delay.total_seconds(), reason)
    return "retried"


async def _park(message: Message, queue: Queue, handlers: Handlers, reason: str) -> str:
    if not await queue.park(message, reason):
        return "lost"
    logger.error("message %s (%s) was parked: %s", message.id, message.subject, reason)
    return await given_up(message, handlers, reason)


async def given_up(message: Message, handlers: Handlers, reason: str) -> str:
    """Tell the handler of a message that has been parked; should that fail, recovery finds what it is about."""
    if (handler := handlers.get(message.kind)) is not None:
        try:
            await handler.give_up(message, reason)
        except Exception:
            logger.exception("nobody was told that message %s (%s) is parked", message.id, message.subject)
    return "parked"
