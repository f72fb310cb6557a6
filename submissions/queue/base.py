"""The seam between the consumer and the backend that holds the messages.

Delivery is at least once: a message is leased to one worker under a token, and the end of the lease brings it back.
Every settlement names the token, so that a worker whose lease has ended changes nothing. A backend without database
transactions (a JetStream stream, say) needs an outbox table: see ``Queue.send``.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from vskill.errors import VskillError


class InvalidMessage(VskillError):
    """A message has a body that no handler can read, or a kind that no handler knows."""

    code = "invalid_message"


@dataclass(frozen=True)
class Message:
    """One message as it was received.

    ``token`` is the lease under which it was received. ``errors`` counts attempts that ended with an error,
    ``crashes`` those whose lease ended without a settlement. ``publisher`` is on whose behalf it was sent.
    """

    id: int
    environment: str
    kind: str
    subject: str
    body: str
    token: str
    errors: int
    crashes: int
    publisher: str = ""

    def decoded(self) -> dict[str, Any]:
        """Return the body as an object; raise ``InvalidMessage`` for anything else."""
        try:
            body = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise InvalidMessage(f"The body of message {self.id} is not JSON. It was parked.") from error
        if not isinstance(body, dict):
            raise InvalidMessage(f"The body of message {self.id} is not an object. It was parked.")
        return body


@dataclass(frozen=True)
class MessageBatch:
    """Messages of one environment that were received together.

    ``parked`` are messages that this receive turned into dead letters, because their workers had crashed too often.
    The receiver must tell their handlers; nobody else will.
    """

    environment: str
    messages: tuple[Message, ...] = ()
    parked: tuple[Message, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.messages or self.parked)

    def split(self, size: int) -> Iterator[MessageBatch]:
        """Yield batches of at most ``size`` messages, those that were parked in one of their own.

        Messages of one publisher go together, so that one whose work is slow holds up as few batches as it can.
        """
        if self.parked:
            yield MessageBatch(self.environment, parked=self.parked)
        of_publisher: dict[str, list[Message]] = {}
        for message in self.messages:
            of_publisher.setdefault(message.publisher, []).append(message)
        messages = tuple(chain.from_iterable(of_publisher.values()))
        for start in range(0, len(messages), size):
            yield MessageBatch(self.environment, messages[start : start + size])


@dataclass(frozen=True)
class QueueStatus:
    """What is in a queue, counted now; ``oldest_at`` is when the oldest waiting message became available."""

    waiting: int
    delayed: int
    leased: int
    parked: int
    oldest_at: datetime | None


class Queue(ABC):
    """Messages of several environments.

    A backend must keep what the abstract methods promise. The others have a default for a backend that cannot offer
    them: the consumer then works more slowly, and loses nothing.
    """

    @abstractmethod
    def send(
        self,
        environment: str,
        kind: str,
        subject: str,
        body: Mapping[str, Any] | None = None,
        *,
        publisher: str = "",
        weight: float = 1.0,
        priority: int = 0,
        delay: timedelta = timedelta(),
        restart: bool = False,
    ) -> bool:
        """Add a message on the calling thread, and return whether it is new.

        Promise: the message becomes visible when the caller's database transaction commits, and never if it is rolled
        back. There is one message for each ``kind`` and ``subject``; a second ``send`` changes nothing and returns
        False. ``body`` is a JSON object. ``publisher`` is on whose behalf it is sent, and ``weight`` (1 as a rule) how
        many turns that publisher has for each turn of others. Among those of one publisher, a message of a higher
        ``priority`` is received earlier; ``delay`` is how long it is not received at all. ``restart`` resets a message
        that exists: its counters start again and its lease is void, so that a worker which holds it can no longer
        settle it.
        """

    @abstractmethod
    async def receive(
        self,
        environment: str,
        limit: int,
        *,
        worker: str,
        full_batch: int = 1,
        fill_wait: timedelta = timedelta(),
        isolated: bool = False,
        without: Collection[str] = (),
    ) -> MessageBatch:
        """Lease up to ``limit`` messages of one environment to ``worker``, the name of a process.

        Promise: no message is leased to two workers at once. Publishers take turns, as often as the weights of their
        messages say. The order within one is by priority, then by age; waiting raises a message as priority does, so
        that none starves. A paused environment gives nothing. Fewer than ``full_batch``
        messages are left alone until the oldest has waited for ``fill_wait``. A message that one more crash would park
        is given out only when ``isolated`` is asked for, and then nothing else is. Messages of the publishers
        ``without``, and of those below them (``host/owner`` is below ``host``), are left alone; a backend may look for
        others among those alone that come next.
        """

    async def has_isolated(self, environment: str) -> bool:
        """Return whether ``receive(isolated=True)`` would find a message.

        Default: False, for a backend that does not know how often a message has crashed its worker.
        """
        del environment
        return False

    @abstractmethod
    def acknowledge(self, message: Message) -> Awaitable[bool]:
        """Remove a message that is done.

        Promise, for every settlement below too: False where the lease was no longer held, and nothing was changed.
        """

    @abstractmethod
    async def retry(self, message: Message, reason: str, delay: timedelta) -> bool:
        """Count an error, keep its ``reason``, and make the message available again after ``delay``."""

    @abstractmethod
    async def release(self, message: Message) -> bool:
        """Give a message back as if it had never been received: neither an error nor a crash is counted."""

    @abstractmethod
    async def surrender(self, message: Message) -> bool:
        """Release a message even if its lease has ended, as long as no other worker has received it since.

        For a worker that is alive and has stopped working on it: the end of its lease was no crash. Where another
        worker has received it, that crash is taken back, and the answer is False.
        """

    @abstractmethod
    async def park(self, message: Message, reason: str) -> bool:
        """Turn a message into a dead letter: it is kept with the ``reason`` and never received again by itself."""

    @abstractmethod
    async def extend(self, messages: Sequence[Message]) -> set[int]:
        """Renew the leases of ``messages``, and return the ids of those whose lease was still held."""

    @abstractmethod
    async def status(self, environment: str) -> QueueStatus:
        """Count what is in the queue of one environment."""

    async def watch(self, arrived: asyncio.Event) -> None:
        """Set ``arrived`` whenever there may be something to receive, until cancelled.

        A hint: every receiver also polls. Default: returns at once, for a backend that sends no notifications.
        """
        del arrived

    async def expire_leases(self, environment: str, has_ended: Callable[[str], bool]) -> int:
        """End the leases of workers for which ``has_ended`` is true, and return how many messages that freed.

        Each counts as a crash, as it would at the end of the lease; a message that has crashed before keeps its lease
        to the end. Default: 0, for a backend that does not know its workers by name.
        """
        del environment, has_ended
        return 0
