"""The queue in the database: one table, leases with tokens, the database's clock.

PostgreSQL hands each claimer other rows by SKIP LOCKED; SQLite has one writer at a time. A claim is one statement, so
that it is one step on both.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache, cached_property
from typing import Any, ClassVar, Final

from django.conf import settings
from django.db import connections
from django.db.models import Count, Min, Q
from django.db.models.functions import Now

from submissions.models import QueueMessage
from submissions.queue.base import Message, MessageBatch, Queue, QueueStatus
from submissions.queue.notifications import watch
from submissions.queue.statements import AGING, QueueStatements, queue_statements
from vskill.environments import WorkerEnv
from vskill.kv.coalescing import group
from vskill.kv.codec import encode, storable
from vskill.kv.rows import with_rows
from vskill.kv.threads import DatabaseThreads, readers, writers

_FREE: Final = Q(leased_until__isnull=True) | Q(leased_until__lte=Now())
_LONGEST_REASON: Final = 2000
_TOKEN_TYPES: Final = ("bigint", "text")

# Of its own, because a lease must be renewed in time however many long transactions wait for the other threads.
lease_thread: Final = DatabaseThreads("queue-lease", lambda: 1)


class DatabaseQueue(Queue):
    """Messages in the table ``QueueMessage`` of one database, written in the transaction of what they are about."""

    transactional: ClassVar[bool] = True

    def __init__(self, alias: str) -> None:
        self._alias = alias

    @cached_property
    def _sql(self) -> QueueStatements:
        return queue_statements(connections[self._alias].vendor)

    def _execute(self, statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        with connections[self._alias].cursor() as cursor:
            cursor.execute(statement, parameters)
            return list(cursor.fetchall())

    def _write_one(self, statement: str, parameters: Sequence[Any]) -> bool:
        return bool(self._execute(statement, parameters))

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
        """Add a message inside the caller's transaction, and return whether it is new or begins anew."""
        seconds = delay.total_seconds()
        text = encode(dict(body or {}))
        with connections[self._alias].cursor() as cursor:
            cursor.execute(
                self._sql.send_anew if anew else self._sql.send,
                [environment, kind, subject, text, priority, seconds, seconds - priority * AGING],
            )
            return bool(cursor.rowcount)

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
        """Lease up to ``limit`` messages of one environment."""
        filling = (min(limit, full_batch), -fill_wait.total_seconds())
        return await writers.run(self._receive, environment, limit, worker, filling, last_chance)

    def _receive(
        self, environment: str, limit: int, worker: str, filling: tuple[int, float], last_chance: bool
    ) -> MessageBatch:
        # An empty poll stays a read: the statement below would take SQLite's only write lock for nothing. Most polls
        # for a last chance are empty.
        if (last_chance or self._sql.vendor == "sqlite") and not self._any_ready(environment, last_chance):
            return MessageBatch(environment)
        token = secrets.token_hex(16)
        allowed = settings.QUEUE_MAX_CRASHES
        # Where more than one crash is allowed, what would be parked is a last chance, and is not among other messages.
        parks = last_chance or allowed <= 1
        lease = [token, settings.QUEUE_LEASE, worker[:100]]
        if parks:
            lease = [allowed, allowed, gone_too_often(), allowed, token, allowed, *lease[1:]]
        rows = self._execute(
            self._sql.claim(last_chance=last_chance, parks=parks),
            [environment, environment, allowed, limit, *lease, *filling],
        )
        rows.sort(key=lambda row: (row[7], row[0]))
        messages = [
            Message(pk, environment, kind, subject, body, held_by, errors, crashes)
            for pk, kind, subject, body, errors, crashes, held_by, _due_at in rows
        ]
        return MessageBatch(
            environment,
            tuple(message for message in messages if message.token),
            tuple(message for message in messages if not message.token),
        )

    def _any_ready(self, environment: str, last_chance: bool) -> bool:
        parameters = [environment, environment, settings.QUEUE_MAX_CRASHES]
        return bool(self._execute(self._sql.any_ready(last_chance=last_chance), parameters))

    async def has_last_chance(self, environment: str) -> bool:
        """Tell whether a last chance waits."""
        return await readers.run(self._any_ready, environment, True)

    def acknowledge(self, message: Message) -> Awaitable[bool]:
        """Delete a message that is done, together with others that are done at the same time."""
        return group(("acknowledge", self._alias), self._acknowledge).add(message)

    def _acknowledge(self, messages: Sequence[Message]) -> list[bool]:
        deleted = self._of_many(self._sql.acknowledge, messages)
        return [message.id in deleted for message in messages]

    def _of_many(self, statement: str, messages: Sequence[Message], *parameters: Any) -> set[int]:
        """Do ``statement`` with the messages that are held, and return their ids."""
        given, tokens = with_rows(self._sql.vendor, _TOKEN_TYPES, [(message.id, message.token) for message in messages])
        return {pk for (pk,) in self._execute(f"{given} {statement}", [*tokens, *parameters])}

    async def retry_later(self, message: Message, reason: str, delay: timedelta) -> bool:
        """Give a message back after an error."""
        seconds = delay.total_seconds()
        parameters = [_storable(reason), seconds, seconds, message.id, message.token]
        return await writers.run(self._write_one, self._sql.retry_later, parameters)

    async def release(self, message: Message) -> bool:
        """Give a message back uncounted, to the place that it had."""
        return await writers.run(self._write_one, self._sql.release, [message.id, message.token])

    async def surrender(self, message: Message) -> bool:
        """Give a message back that this worker could not keep, if nobody else has had it since."""
        return await writers.run(self._write_one, self._sql.surrender, [message.id, message.token])

    async def park(self, message: Message, reason: str) -> bool:
        """Set a message aside with the reason."""
        return await writers.run(self._write_one, self._sql.park, [_storable(reason), message.id, message.token])

    async def extend(self, messages: Sequence[Message]) -> set[int]:
        """Renew leases; a message whose lease has run out is not renewed, even if nobody has taken it yet."""
        return await lease_thread.run(self._extend, tuple(messages))

    def _extend(self, messages: Sequence[Message]) -> set[int]:
        return self._of_many(self._sql.extend, messages, settings.QUEUE_LEASE)

    async def watch(self, news: asyncio.Event) -> None:
        """Set ``news`` when messages are committed."""
        await watch(self._alias, news)

    async def free(self, environment: str, has_ended: Callable[[str], bool]) -> int:
        """End the leases of workers that are gone."""
        workers = await readers.run(self._execute, self._sql.workers, [environment])
        ended = [worker for (worker,) in workers if has_ended(worker)]
        return sum([await writers.run(self._free, environment, worker) for worker in ended])

    def _free(self, environment: str, worker: str) -> int:
        return len(self._execute(self._sql.free, [environment, worker]))

    async def status(self, environment: str) -> QueueStatus:
        """Count the messages of one environment."""
        return await readers.run(self.count, environment)

    def count(self, environment: str) -> QueueStatus:
        """Count the messages of one environment on the calling thread."""
        waiting = Q(parked_at__isnull=True, available_at__lte=Now()) & _FREE
        counted = (
            QueueMessage.objects.using(self._alias)
            .filter(environment=environment)
            .aggregate(
                waiting=Count("id", filter=waiting),
                delayed=Count("id", filter=Q(parked_at__isnull=True, available_at__gt=Now()) & _FREE),
                leased=Count("id", filter=Q(parked_at__isnull=True, leased_until__gt=Now())),
                parked=Count("id", filter=Q(parked_at__isnull=False)),
                oldest_at=Min("available_at", filter=waiting),
            )
        )
        return QueueStatus(**counted)


def gone_too_often() -> str:
    """Return the reason that is written down when a message is parked for the crashes of its workers."""
    return f"its worker did not come back {settings.QUEUE_MAX_CRASHES} times"


def _storable(reason: str) -> str:
    # An error may quote what a stranger wrote.
    return storable(reason)[:_LONGEST_REASON]


@cache
def _queue_of(alias: str) -> DatabaseQueue:
    return DatabaseQueue(alias)


def get_queue(env: WorkerEnv) -> DatabaseQueue:
    """Return the queue of an environment; it lives in the environment's database, so that sending joins its
    transactions."""
    return _queue_of(env.database)
