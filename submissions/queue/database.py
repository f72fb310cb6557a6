"""The queue in the database: one table, leases with tokens, the database's clock.

PostgreSQL gives each claimer other rows by SKIP LOCKED; SQLite has one writer at a time. A claim is one statement, so
that it is atomic on both.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from functools import cache, cached_property
from time import monotonic
from typing import Any, Final

from django.conf import settings
from django.db import connections, transaction
from django.db.models import Count, Min, Q
from django.db.models.functions import Now

from submissions.models import QueueMessage
from submissions.queue.base import Message, MessageBatch, Queue, QueueStatus
from submissions.queue.newcomers import as_parameter
from submissions.queue.notifications import watch
from submissions.queue.statements import AGING, QueueStatements, queue_statements
from vskill.environments import WorkerEnv
from vskill.kv.coalescing import group
from vskill.kv.codec import encode, storable
from vskill.kv.rows import with_rows
from vskill.kv.threads import DatabaseThreads, readers, writers

_NOT_LEASED: Final = Q(leased_until__isnull=True) | Q(leased_until__lte=Now())
_LONGEST_REASON: Final = 2000
_LONGEST_PUBLISHER: Final = QueueMessage._meta.get_field("publisher").max_length
_LOOK_SECONDS: Final = 1.0
_TURNS_AT_ONCE: Final = 500
_TOKEN_TYPES: Final = ("bigint", "text")

# A thread of its own: leases must be renewed in time however many long transactions occupy the other threads.
lease_thread: Final = DatabaseThreads("queue-lease", lambda: 1)


class DatabaseQueue(Queue):
    """Messages in the table ``QueueMessage`` of one database.

    ``send`` joins the caller's transaction in that database, which is how it keeps the promise of the seam.
    """

    def __init__(self, alias: str) -> None:
        self._alias = alias
        # When to look again for messages without a turn, by environment.
        self._next_look: dict[str, float] = {}

    @cached_property
    def _sql(self) -> QueueStatements:
        return queue_statements(connections[self._alias].vendor)

    def _execute(self, statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with connections[self._alias].cursor() as cursor:
            cursor.execute(statement, parameters)
            return list(cursor.fetchall())

    async def _settle(self, statement: str, message: Message, **parameters: Any) -> bool:
        """Run a settlement of one message on a writer thread, and return whether it found the message."""
        named = {"id": message.id, "token": message.token, **parameters}
        return bool(await writers.run(self._execute, statement, named))

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
        """Add a message of ``kind`` about ``subject`` in the caller's transaction; return whether it is new or reset.

        ``body``, ``publisher``, ``weight``, ``priority``, ``delay`` and ``restart`` are those of ``Queue.send``.
        """
        seconds = delay.total_seconds()
        parameters: dict[str, Any] = {
            "environment": environment,
            "kind": kind,
            "subject": subject,
            "publisher": storable(publisher)[:_LONGEST_PUBLISHER],
            "weight": weight,
            "body": encode(dict(body or {})),
            "priority": priority,
            "delay": seconds,
            "due": seconds - priority * AGING,
        }
        self._take_turns(environment, publisher)
        with connections[self._alias].cursor() as cursor:
            cursor.execute(self._sql.send_restarting if restart else self._sql.send, parameters)
            return bool(cursor.rowcount)

    def _take_turns(self, *of: str) -> None:
        """Let transactions that give turns to messages ``of`` the same publisher do so one after the other.

        Those that do not see one another's messages would give the same turn to all of them.
        """
        if self._sql.vendor == "postgresql":
            self._execute("SELECT pg_advisory_xact_lock(hashtextextended(%(of)s, 0))", {"of": "\n".join(of)})

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
        """Lease up to ``limit`` messages of ``environment`` to ``worker``.

        ``full_batch``, ``fill_wait``, ``isolated`` and ``without`` are those of ``Queue.receive``.
        """
        claim = {
            "environment": environment,
            "max_crashes": settings.QUEUE_MAX_CRASHES,
            "limit": limit,
            "token": secrets.token_hex(16),
            "lease": settings.QUEUE_LEASE,
            "worker": worker[:100],
            "full_batch": min(limit, full_batch),
            "oldest": -fill_wait.total_seconds(),
            "reason": crash_limit_reason(),
        }
        if without and not isolated:
            claim["without"] = as_parameter(without)
        return await writers.run(self._receive, claim, isolated)

    def _receive(self, claim: Mapping[str, Any], isolated: bool) -> MessageBatch:
        environment, limit = claim["environment"], claim["limit"]
        looks = not isolated and monotonic() >= self._next_look.get(environment, 0.0)
        if looks:
            self._give_turns(environment)
        rows = self._claim(claim, isolated)
        missing = limit - len(rows)
        # With publishers left out nearly every claim finds less: no sign that others are missing a turn.
        if missing and not isolated and not looks and "without" not in claim and self._give_turns(environment):
            fuller = max(1, claim["full_batch"] - len(rows))
            rows += self._claim({**claim, "limit": missing, "full_batch": fuller}, isolated)
        rows.sort(key=lambda row: (row[7] or 0.0, row[8], row[0]))
        messages = [
            Message(pk, environment, kind, subject, body, token, errors, crashes, publisher)
            for pk, kind, subject, body, errors, crashes, token, _turn, _due_at, publisher in rows
        ]
        return MessageBatch(
            environment,
            tuple(message for message in messages if message.token),
            tuple(message for message in messages if not message.token),
        )

    def _claim(self, claim: Mapping[str, Any], isolated: bool) -> list[tuple[Any, ...]]:
        # An empty poll stays a read: a claim would take SQLite's only write lock for nothing. A poll for isolated
        # messages is nearly always empty.
        if isolated or self._sql.vendor == "sqlite":
            any_claimable = self._sql.any_claimable(isolated=isolated, leaves_out="without" in claim)
            if not self._execute(any_claimable, claim):
                return []
        # Unless the first crash parks already, only isolated messages can be parked by a claim.
        parks = isolated or claim["max_crashes"] <= 1
        return self._execute(self._sql.claim(isolated=isolated, parks=parks, leaves_out="without" in claim), claim)

    def _give_turns(self, environment: str) -> bool:
        """Give turns to messages whose delay has ended, and return whether there were any.

        A look costs a read, so it is made once a second, and whenever a claim finds less than it could take.
        """
        self._next_look[environment] = monotonic() + _LOOK_SECONDS
        if not self._execute(self._sql.any_without_turn, {"environment": environment}):
            return False
        with transaction.atomic(using=self._alias):
            self._take_turns(environment)
            return bool(self._execute(self._sql.give_turns, {"environment": environment, "limit": _TURNS_AT_ONCE}))

    async def has_isolated(self, environment: str) -> bool:
        """Return whether a message that one more crash would park can be received."""
        parameters = {"environment": environment, "max_crashes": settings.QUEUE_MAX_CRASHES}
        return bool(await readers.run(self._execute, self._sql.any_claimable(isolated=True), parameters))

    def acknowledge(self, message: Message) -> Awaitable[bool]:
        """Delete a message that is done, in one statement with others that are done at the same time."""
        return group(("acknowledge", self._alias), self._acknowledge).add(message)

    def _acknowledge(self, messages: Sequence[Message]) -> list[bool]:
        deleted = self._of_many(self._sql.acknowledge, messages)
        return [message.id in deleted for message in messages]

    def _of_many(self, statement: str, messages: Sequence[Message], **parameters: Any) -> set[int]:
        """Execute ``statement`` for those of ``messages`` that are leased, and return their ids."""
        given, tokens = with_rows(self._sql.vendor, _TOKEN_TYPES, [(message.id, message.token) for message in messages])
        return {pk for (pk,) in self._execute(f"{given} {statement}", tokens | parameters)}

    async def retry(self, message: Message, reason: str, delay: timedelta) -> bool:
        """Count an error and make a message available again after ``delay``."""
        return await self._settle(self._sql.retry, message, reason=_storable(reason), delay=delay.total_seconds())

    async def release(self, message: Message) -> bool:
        """Give a message back uncounted, to the place in the order that it had."""
        return await self._settle(self._sql.release, message)

    async def surrender(self, message: Message) -> bool:
        """Give a message back uncounted even after its lease, unless another worker has received it since."""
        if await self._settle(self._sql.surrender, message):
            return True
        await self._settle(self._sql.forgive_crash, message, crashes=message.crashes)
        return False

    async def park(self, message: Message, reason: str) -> bool:
        """Turn a message into a dead letter with the reason."""
        return await self._settle(self._sql.park, message, reason=_storable(reason))

    async def extend(self, messages: Sequence[Message]) -> set[int]:
        """Renew leases; a lease that has ended is not renewed, even if nobody has claimed the message since."""
        return await lease_thread.run(self._extend, tuple(messages))

    def _extend(self, messages: Sequence[Message]) -> set[int]:
        return self._of_many(self._sql.extend, messages, lease=settings.QUEUE_LEASE)

    async def watch(self, arrived: asyncio.Event) -> None:
        """Set ``arrived`` when messages are committed."""
        await watch(self._alias, arrived)

    async def expire_leases(self, environment: str, has_ended: Callable[[str], bool]) -> int:
        """End the leases of workers that have ended."""
        workers = await readers.run(self._execute, self._sql.workers, {"environment": environment})
        expired = 0
        for (worker,) in workers:
            if has_ended(worker):
                held = {"environment": environment, "worker": worker}
                expired += len(await writers.run(self._execute, self._sql.expire_leases, held))
        return expired

    async def status(self, environment: str) -> QueueStatus:
        """Count the messages of one environment."""
        return await readers.run(self.count, environment)

    def count(self, environment: str) -> QueueStatus:
        """Count the messages of one environment on the calling thread."""
        waiting = Q(parked_at__isnull=True, available_at__lte=Now()) & _NOT_LEASED
        counted = (
            QueueMessage.objects.using(self._alias)
            .filter(environment=environment)
            .aggregate(
                waiting=Count("id", filter=waiting),
                delayed=Count("id", filter=Q(parked_at__isnull=True, available_at__gt=Now()) & _NOT_LEASED),
                leased=Count("id", filter=Q(parked_at__isnull=True, leased_until__gt=Now())),
                parked=Count("id", filter=Q(parked_at__isnull=False)),
                oldest_at=Min("available_at", filter=waiting),
            )
        )
        return QueueStatus(**counted)


def crash_limit_reason() -> str:
    """Return the reason that is kept when a message is parked because its workers crashed."""
    return f"its worker did not come back {settings.QUEUE_MAX_CRASHES} times"


def _storable(reason: str) -> str:
    # An error may quote what a stranger wrote.
    return storable(reason)[:_LONGEST_REASON]


@cache
def _queue_of(alias: str) -> DatabaseQueue:
    return DatabaseQueue(alias)


def get_queue(env: WorkerEnv) -> DatabaseQueue:
    """Return the queue of an environment, in its own database, so that ``send`` joins its transactions."""
    return _queue_of(env.database)
