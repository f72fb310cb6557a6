"""A real consumer over the real queue, with handlers that a test controls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from submissions.queue.base import Message
from submissions.queue.consumer import Consumer, ConsumerOptions
from submissions.queue.machine_watch import MachineWatch
from submissions.queue.settlement import Handler, Handlers
from tests.submissions.queue.messages import KIND
from vskill.environments import WorkerEnv


async def nothing(_message: Message) -> None:
    """Do nothing, successfully."""


@dataclass
class Recorder:
    """A handler that remembers what it was given, and does what the test says."""

    work: Callable[[Message], Awaitable[None]] = nothing
    seen: list[str] = field(default_factory=list)
    given_up: list[tuple[str, str]] = field(default_factory=list)

    async def run(self, message: Message) -> None:
        """Remember the message and do the work."""
        self.seen.append(message.subject)
        await self.work(message)

    async def give_up(self, message: Message, reason: str) -> None:
        """Remember that the message will not come back."""
        self.given_up.append((message.subject, reason))

    @property
    def handlers(self) -> Handlers:
        """Return the handlers of the test's one kind."""
        return {KIND: Handler(self.run, self.give_up)}


def consumer(
    *environments: WorkerEnv,
    handlers: Handlers,
    size: int = 3,
    concurrency: int = 10,
    once: bool = False,
    drain: bool = False,
    machine: MachineWatch | None = None,
) -> Consumer:
    """Return a consumer of ``environments``."""
    return Consumer(environments, handlers, ConsumerOptions(size, concurrency, "test", once=once, drain=drain), machine)


async def drained(*environments: WorkerEnv, handlers: Handlers, size: int = 3, concurrency: int = 10) -> Consumer:
    """Run a consumer until nothing is left."""
    running = consumer(*environments, handlers=handlers, size=size, concurrency=concurrency, drain=True)
    await running.run(asyncio.Event())
    return running
