"""Receive batches and settle each message by itself, each batch under its own worker environment."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any, Final

from django.conf import settings

from submissions.queue.base import Message, MessageBatch
from submissions.queue.database import crash_limit_reason, get_queue
from submissions.queue.in_flight import BatchesInFlight, Share
from submissions.queue.isolation import IsolatedMessages, RunIsolated
from submissions.queue.leases import LeaseKeeper, renewed
from submissions.queue.machine_watch import MachineWatch
from submissions.queue.pause import get_pause
from submissions.queue.settlement import BatchReport, Handlers, handle_message, release, report_parked
from submissions.queue.watchers import watching
from vskill.environments import WorkerEnv
from vskill.processes.machine_faults import machine_fault
from vskill.worker_context import run_with_worker_env

logger = logging.getLogger(__name__)

# How long work that was cancelled may take to stop, before the process ends without it.
STOPPING_SECONDS: Final = 5.0
# After so many failures in a row to receive anything, a consumer says so in its heartbeat.
FAILED_RECEIVES: Final = 3


async def handle_submission_queue(
    batch: MessageBatch,
    env: WorkerEnv,
    *,
    handlers: Handlers,
    keeper: LeaseKeeper | None = None,
    received_at: float | None = None,
    machine: MachineWatch | None = None,
) -> BatchReport:
    """Handle one batch of one environment, and report how each message ended.

    The whole batch runs inside ``run_with_worker_env(env, ...)``. Its messages run concurrently, each by the one of
    ``handlers`` for its kind, and each is settled by itself. Without a ``keeper`` the leases are renewed here.
    ``received_at`` is when ``batch`` was asked for (``time.monotonic``); a batch without it may have been received
    long ago, and is released while the queue is paused. ``machine`` is told of faults of this machine.
    """
    if keeper is None:
        async with LeaseKeeper().running() as own:
            return await handle_submission_queue(
                batch, env, handlers=handlers, keeper=own, received_at=received_at, machine=machine
            )
    queue, watch = get_queue(env), machine or MachineWatch()
    if received_at is None and await get_pause(env) is not None:
        works = [release(message, queue, keeper) for message in batch.messages]
    else:
        started = monotonic() if received_at is None else received_at
        works = [handle_message(message, queue, handlers, keeper, started, watch) for message in batch.messages]
    return await run_with_worker_env(env, _settle_all, batch, handlers, works)


async def _settle_all(
    batch: MessageBatch, handlers: Handlers, works: Sequence[Coroutine[Any, Any, str]]
) -> BatchReport:
    """Run ``works``, one for each message, and report the messages that were parked by the receive itself."""
    report = BatchReport()
    messages: list[Message] = [*batch.messages, *batch.parked]
    reports = [report_parked(message, handlers, crash_limit_reason()) for message in batch.parked]
    tasks = [
        asyncio.create_task(work, name=f"message-{message.id}")
        for message, work in zip(messages, [*works, *reports], strict=True)
    ]
    try:
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    except asyncio.CancelledError:
        # gather has cancelled the messages; each is released before this batch may end.
        await asyncio.wait(tasks)
        raise
    for message, end in zip(messages, ends, strict=True):
        if isinstance(end, str):
            report.add(end)
        else:
            report.add("unsettled")
            logger.error("message %s was not settled and comes back after its lease: %r", message.id, end)
    return report


@dataclass(frozen=True)
class ConsumerOptions:
    """How a consumer takes work.

    ``max_batch_size`` messages make a batch, and ``max_concurrency`` batches are in flight. ``worker`` is the name that
    leases carry. ``once``: fill the free slots once, and end when that is handled. ``drain``: end when nothing is left,
    delayed messages included; a paused queue counts as empty. ``isolated_only``: take only messages that one more crash
    would park, one after another until none is left. ``run_isolated`` handles those in another process; without it this
    process handles them one at a time.
    """

    max_batch_size: int
    max_concurrency: int
    worker: str
    once: bool = False
    drain: bool = False
    isolated_only: bool = False
    run_isolated: RunIsolated | None = None


class Consumer:
    """Keep several batches in flight, of several environments in turn."""

    def __init__(
        self,
        environments: Sequence[WorkerEnv],
        handlers: Handlers,
        options: ConsumerOptions,
        machine: MachineWatch | None = None,
    ) -> None:
        """Consume messages of ``environments`` with the handler of each kind.

        ``options`` say how; ``machine`` says whether this machine can work.
        """
        self._environments = list(environments)
        self._options = options
        self._isolated = IsolatedMessages(options.worker, only=options.isolated_only, run_isolated=options.run_isolated)
        self._arrived = asyncio.Event()
        # Where nobody can come later, nothing is kept for them.
        brief = options.once or options.isolated_only
        # A partial batch may have been left to fill because another ran; when that ends, it is taken at once.
        self._batches = BatchesInFlight(options.max_concurrency, keeps=not brief, changed=self._arrived.set)
        self._handlers = self._batches.counted(handlers)
        self._machine = machine or MachineWatch()
        self._failed_receives: Counter[str] = Counter()
        self.report = BatchReport()
        # Why the last attempt to receive failed, by environment.
        self.receive_errors: dict[str, str] = {}

    @property
    def fault(self) -> str:
        """Return why this consumer takes no work although it is alive, empty while it does."""
        failing = [name for name, count in self._failed_receives.items() if count >= FAILED_RECEIVES]
        errors = [f"no work can be taken from {name}: {self.receive_errors[name]}" for name in failing]
        return self._machine.fault or "; ".join(errors)

    async def run(self, stop: asyncio.Event) -> None:
        """Consume until ``stop`` is set or the options say that it is done, then finish or release within the grace."""
        brief = self._options.once or self._options.isolated_only
        watchers = nullcontext() if brief else watching(tuple(self._environments), self._arrived)
        async with LeaseKeeper().running() as keeper, watchers:
            try:
                await self._consume(stop, keeper)
            finally:
                await self._finish(stop)

    async def _consume(self, stop: asyncio.Event, keeper: LeaseKeeper) -> None:
        while not stop.is_set():
            self._arrived.clear()
            took = await self._take_what_fits(keeper)
            if self._options.once:
                return
            if not took:
                if self._options.isolated_only and not self._batches.tasks:
                    return
                if self._options.drain and not self._batches.tasks and not await self._work_left():
                    return
                await self._wait(stop)

    async def _wait(self, stop: asyncio.Event) -> None:
        """Wait for a free slot, a new message, the next poll or the order to stop, whichever comes first."""
        signs = [asyncio.create_task(stop.wait())]
        full = self._batches.free <= 0
        if not full:
            signs.append(asyncio.create_task(self._arrived.wait()))
        try:
            await asyncio.wait(
                {*signs, *self._batches.tasks},
                timeout=None if full else min(settings.QUEUE_POLL_INTERVAL, self._batches.seconds_until_look),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for sign in signs:
                sign.cancel()

    async def _take_what_fits(self, keeper: LeaseKeeper) -> bool:
        """Fill the free slots, shared evenly among the environments that have work; return whether there was any."""
        if not await self._machine.can_work():
            return False
        free = self._batches.free
        names = [env.name for env in self._environments]
        # Waiting for a fuller batch costs nothing while other work is in flight.
        wait = timedelta(seconds=settings.QUEUE_MAX_BATCH_WAIT if self._batches.tasks else 0)
        took = False
        hungry = list(self._environments)
        while hungry and free > 0:
            served, hungry = hungry, []
            for position, env in enumerate(served):
                share = self._batches.share(env.name, names)
                slots = min(-(-free // (len(served) - position)), share.batches)
                if slots and (taken := await self._take(env, Share(slots, share.without), wait, keeper)):
                    took = True
                    free -= taken
                    # Served environments go last the next time, so that a single slot is not always the same one's.
                    self._environments.remove(env)
                    self._environments.append(env)
                    if taken == slots:
                        hungry.append(env)
        return took

    async def _take(self, env: WorkerEnv, share: Share, wait: timedelta, keeper: LeaseKeeper) -> int:
        """Start the batches of one environment that ``share`` allows, and return how many."""
        try:
            asked_at = monotonic()
            batch = await self._isolated.receive(env)
            if not (isolated := bool(batch)) and not self._options.isolated_only:
                asked_at = monotonic()
                batch = await get_queue(env).receive(
                    env.name,
                    self._options.max_batch_size * share.batches,
                    worker=self._options.worker,
                    full_batch=self._options.max_batch_size,
                    # What is kept for newcomers is not kept from them until there are enough to fill it.
                    fill_wait=timedelta() if share.without else wait,
                    without=share.without,
                )
        except Exception as error:  # noqa: BLE001 - a database that is away must not end the consumer; the next poll asks again
            logger.error("no work could be taken from %s, asking again: %r", env.name, error)
            if (fault := machine_fault(error)) is not None:
                self._machine.report(fault)
            self._failed_receives[env.name] += 1
            self.receive_errors[env.name] = str(error) or repr(error)
            return 0
        self._failed_receives.pop(env.name, None)
        self.receive_errors.pop(env.name, None)
        if not batch:
            self._batches.found_nobody(env.name, share)
        parts = list(batch.split(self._options.max_batch_size))
        for part in parts:
            task = asyncio.create_task(self._run_batch(part, env, keeper, asked_at))
            self._batches.begin(task, part)
            if isolated:
                self._isolated.handled_by(task)
        return len(parts)

    async def _run_batch(self, batch: MessageBatch, env: WorkerEnv, keeper: LeaseKeeper, asked_at: float) -> None:
        try:
            batch, asked_at = await renewed(batch, get_queue(env), asked_at)
            report = await handle_submission_queue(
                batch, env, handlers=self._handlers, keeper=keeper, received_at=asked_at, machine=self._machine
            )
        except Exception:
            logger.exception("a batch of %s was not handled; its messages come back after their leases", env.name)
            self.report.ends["unsettled"] += len(batch.messages)
        else:
            self.report.ends.update(report.ends)

    async def _work_left(self) -> bool:
        for env in self._environments:
            if await get_pause(env) is None:
                status = await get_queue(env).status(env.name)
                if status.waiting or status.delayed or status.leased:
                    return True
        return False

    async def _finish(self, stop: asyncio.Event) -> None:
        """Let the batches in flight end; after the order to stop, end within the grace and release the rest."""
        stopping = asyncio.create_task(stop.wait())
        try:
            while (work := self._batches.tasks | self._isolated.running) and not stop.is_set():
                await asyncio.wait({stopping, *work}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        # Both graces run at the same time; one after the other would take twice as long.
        await asyncio.gather(self._isolated.end(), self._end_batches())

    async def _end_batches(self) -> None:
        if not (tasks := self._batches.tasks):
            return
        _done, late = await asyncio.wait(tasks, timeout=settings.QUEUE_SHUTDOWN_GRACE)
        for task in late:
            task.cancel()
        if late:
            logger.warning(
                "%d batches did not end within %g s and are given back", len(late), settings.QUEUE_SHUTDOWN_GRACE
            )
            await asyncio.wait(late, timeout=STOPPING_SECONDS)
