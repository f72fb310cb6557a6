"""Handle one message under its lease, and settle it: done, retried, parked, released, or lost to another worker."""

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
from submissions.queue.machine_watch import MachineWatch
from vskill.errors import VskillError
from vskill.processes.machine_faults import machine_fault
from vskill.work_limits import work_limit

logger = logging.getLogger(__name__)

T = TypeVar("T")

JITTER: Final = 0.2


@dataclass(frozen=True)
class Handler:
    """What is done with messages of one kind.

    ``run`` does the work. ``on_parked`` is called with the reason after a message became a dead letter.
    """

    run: Callable[[Message], Awaitable[None]]
    on_parked: Callable[[Message, str], Awaitable[None]]


Handlers = Mapping[str, Handler]
"""The handler of each kind of message."""


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
    """Return how long a message waits after its ``errors``-th error (from 1), with jitter to spread the retries."""
    steps = settings.QUEUE_BACKOFF
    seconds = steps[min(errors, len(steps)) - 1]
    return timedelta(seconds=seconds * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311 - spreads load, hides nothing


async def handle_message(
    message: Message,
    queue: Queue,
    handlers: Handlers,
    keeper: LeaseKeeper,
    received_at: float,
    machine: MachineWatch,
) -> str:
    """Handle one message, settle it, and return how it ended; no exception of its handler leaves this function.

    ``message`` was received from ``queue`` by a call that began at ``received_at`` (``time.monotonic``), from which
    ``keeper`` computes the deadline of its lease. ``handlers`` are by kind. A fault of this machine is reported to
    ``machine``, and the message is given back uncounted; so is one that was received when a fault was known.
    Cancelled, it releases the message, or completes the settlement that has begun, and raises ``CancelledError``.
    """
    if machine.fault:
        return await release(message, queue, keeper)
    failure: Exception | None = None
    stopped: asyncio.CancelledError | None = None
    with keeper.holding(message, queue, received_at) as held:
        try:
            await _run(message, handlers)
        except asyncio.CancelledError as error:
            stopped = error
        except Exception as error:  # noqa: BLE001 - one message's error must not reach the others of its batch
            failure = error
    # Settled after the keeper has let go of the lease: a renewal now would find no message and take the lease for lost.
    if held.lost:
        # The lease ended because it could not be renewed. This worker is alive, so no crash is to be counted.
        await _complete(message, _give_back(message, queue.surrender, queue, keeper))
        return "lost"
    if stopped is not None:
        await release(message, queue, keeper)
        raise stopped
    if failure is None:
        return "done" if await _complete(message, queue.acknowledge(message)) else "lost"
    if (fault := machine_fault(failure)) is not None:
        machine.report(fault)
        if machine.is_innocent(message):
            return await release(message, queue, keeper)
    return await _complete(message, _settle_failure(message, queue, handlers, failure))


async def _complete(message: Message, settlement: Awaitable[T]) -> T:
    """Await a settlement that has been decided on; cancelled, complete it first and raise ``CancelledError`` then.

    A second cancellation is obeyed at once. The caller that cancels has a time limit of its own.
    """
    settling = asyncio.ensure_future(settlement)
    try:
        return await asyncio.shield(settling)
    except asyncio.CancelledError:
        await asyncio.wait([settling])
        if not settling.cancelled() and (error := settling.exception()) is not None:
            logger.error("message %s was not settled and comes back after its lease: %s", message.id, error)
        raise


async def release(message: Message, queue: Queue, keeper: LeaseKeeper) -> str:
    """Release a message, even when cancelled meanwhile, and return how that ended.

    Where the database does not answer, ``keeper`` gives the message back later.
    """
    return await _complete(message, _give_back(message, queue.release, queue, keeper))


async def _give_back(
    message: Message, give_back: Callable[[Message], Awaitable[bool]], queue: Queue, keeper: LeaseKeeper
) -> str:
    try:
        return "given back" if await give_back(message) else "lost"
    except Exception as error:  # noqa: BLE001 - whatever it is, the keeper tries again, and the lease ends by itself
        logger.warning("message %s could not be given back, trying again: %r", message.id, error)
        keeper.surrender_later(message, queue)
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
    if not await queue.retry(message, reason, delay):
        return "lost"
    logger.warning("message %s (%s) again in %.0f s: %s", message.id, message.subject, delay.total_seconds(), reason)
    return "retried"


async def _park(message: Message, queue: Queue, handlers: Handlers, reason: str) -> str:
    if not await queue.park(message, reason):
        return "lost"
    logger.error("message %s (%s) was parked: %s", message.id, message.subject, reason)
    return await report_parked(message, handlers, reason)


async def report_parked(message: Message, handlers: Handlers, reason: str) -> str:
    """Tell the handler of a message that it is a dead letter; if that fails, recovery finds its submission."""
    if (handler := handlers.get(message.kind)) is not None:
        try:
            await handler.on_parked(message, reason)
        except Exception:
            logger.exception("nobody was told that message %s (%s) is parked", message.id, message.subject)
    return "parked"
