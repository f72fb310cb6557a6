"""The seam between the consumer and whatever holds the messages: a broker with leases can stand behind it.

A message is received under a lease with a token. Whatever settles it names the token; a lease that has run out
settles nothing.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from vskill.errors import VskillError


class InvalidMessage(VskillError):
    """A message has a body that no handler can read, or a kind that none knows."""

    code = "invalid_message"


@dataclass(frozen=True)
class Message:
    """One message as it was received."""

    id: int
    environment: str
    kind: str
    subject: str
    body: str
    token: str
    errors: int
    crashes: int

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

    ``abandoned`` are messages whose workers died so often that they were parked instead of being handed out once more.
    """

    environment: str
    messages: tuple[Message, ...] = ()
    abandoned: tuple[Message, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.messages or self.abandoned)


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

    ``transactional`` says whether ``send`` joins the caller's database transaction; only such a queue can promise
    that an accepted submission has its message.
    """

    transactional: ClassVar[bool] = False

    @abstractmethod
    def send(
        self,
        environment: str,
        kind: str,
        subject: str,
        body: Mapping[str, Any] | None = None,
        *,
        priority: int = 0,
        delay: timedelta = timedelta(),
        anew: bool = False,
    ) -> bool:
        """Add a message, synchronously, and return whether it is new: one of that kind and subject is enough.

        With ``anew`` one that is there already starts from the beginning, its lease void: whoever holds it has worked
        on what is no longer so, and must not settle it any more.
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
        last_chance: bool = False,
    ) -> MessageBatch:
        """Lease up to ``limit`` messages of one environment, higher priority first, then oldest.

        Waiting raises a message as priority does, so that none waits for ever. While the environment is paused there
        is nothing.

        Fewer than ``full_batch`` are left alone until the oldest has waited for ``fill_wait``. A message that one
        more death of its worker would park is handed out only with ``last_chance``, and nothing else is then: whoever
        takes them one at a time never lets one of them die with another.
        """

    @abstractmethod
    async def has_last_chance(self, environment: str) -> bool:
        """Tell whether there is a message that only ``last_chance`` would receive."""

    @abstractmethod
    def acknowledge(self, message: Message) -> Awaitable[bool]:
        """Remove a message that is done; False where the lease was no longer held, and nothing was changed."""

    @abstractmethod
    async def retry_later(self, message: Message, reason: str, delay: timedelta) -> bool:
        """Give a message back after an error, counted, to be received after ``delay``; False as above."""

    @abstractmethod
    async def release(self, message: Message) -> bool:
        """Give a message back as if it had never been received; False as above."""

    @abstractmethod
    async def surrender(self, message: Message) -> bool:
        """Give a message back as ``release`` does, even after its lease has run out, unless somebody else had it since.

        For a worker that lives and has stopped: the end of its lease was no crash.
        """

    @abstractmethod
    async def park(self, message: Message, reason: str) -> bool:
        """Set a message aside for a person; False as above."""

    @abstractmethod
    async def extend(self, messages: Sequence[Message]) -> set[int]:
        """Renew the leases of ``messages`` and return the ids of those that were still held."""

    async def watch(self, _news: asyncio.Event) -> None:
        """Set the event whenever there may be something to receive, until cancelled.

        Not to be relied upon: whoever receives polls too. A queue that cannot tell returns at once, as this one does.
        """
        return

    async def free(self, _environment: str, _has_ended: Callable[[str], bool]) -> int:
        """End the leases of workers that are known to be gone, and return how many messages that freed.

        Each counts as a crash, as it would at the end of its lease; one that has crashed before waits for that end. A
        queue that does not tell its workers apart waits for the leases, as this one does.
        """
        return 0

    @abstractmethod
    async def status(self, environment: str) -> QueueStatus:
        """Return what is in the queue of one environment."""
