"""The queue in the database: one table, leases with tokens, the database's clock.

PostgreSQL hands each claimer other rows by SKIP LOCKED; SQLite has one writer at a time, and an immediate transaction
makes the claim one step.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.db import IntegrityError, connections, transaction
from django.db.models import Count, F, Min, Q, QuerySet
from django.db.models.functions import Now

from submissions.models import QueueMessage
from submissions.queue.base import Message, MessageBatch, Queue, QueueStatus
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now
from vskill.kv.codec import encode
from vskill.kv.threads import writers

_FREE = Q(leased_until__isnull=True) | Q(leased_until__lte=Now())


def _message(row: QueueMessage, token: str) -> Message:
    return Message(row.pk, row.environment, row.kind, row.subject, row.body, token, row.errors, row.crashes)


class DatabaseQueue(Queue):
    """Messages in the table ``QueueMessage`` of one database, written in the transaction of what they are about."""

    transactional: ClassVar[bool] = True

    def __init__(self, alias: str) -> None:
        self._alias = alias

    def _rows(self, environment: str) -> QuerySet[QueueMessage]:
        return QueueMessage.objects.using(self._alias).filter(environment=environment)

    def _held(self, message: Message) -> QuerySet[QueueMessage]:
        return QueueMessage.objects.using(self._alias).filter(
            pk=message.id, lease_token=message.token, leased_until__gt=Now()
        )

    def send(
        self,
        environment: str,
        kind: str,
        subject: str,
        body: Mapping[str, Any] | None = None,
        *,
        priority: int = 0,
        delay: timedelta = timedelta(),
    ) -> bool:
        """Add a message inside the caller's transaction, and return whether it is new."""
        now = database_now(self._alias)
        try:
            with transaction.atomic(using=self._alias):
                QueueMessage.objects.using(self._alias).create(
                    environment=environment,
                    kind=kind,
                    subject=subject,
                    body=encode(dict(body or {})),
                    priority=priority,
                    created_at=now,
                    available_at=now + delay,
                )
        except IntegrityError:
            if self._rows(environment).filter(kind=kind, subject=subject, parked_at__isnull=True).exists():
                return False
            raise
        return True

    async def receive(
        self, environment: str, limit: int, *, worker: str, fill_wait: timedelta = timedelta()
    ) -> MessageBatch:
        """Lease up to ``limit`` messages of one environment."""
        return await writers.run(self._receive, environment, limit, worker, fill_wait)

    def _ready(self, environment: str) -> QuerySet[QueueMessage]:
        ready = self._rows(environment).filter(_FREE, parked_at__isnull=True, available_at__lte=Now())
        return ready.order_by("-priority", "id")

    def _receive(self, environment: str, limit: int, worker: str, fill_wait: timedelta) -> MessageBatch:
        # An empty poll stays a read: the transaction below would take SQLite's only write lock for nothing.
        waiting = list(self._ready(environment).values_list("available_at", flat=True)[:limit])
        if not waiting:
            return MessageBatch(environment)
        if len(waiting) < limit and fill_wait and min(waiting) > database_now(self._alias) - fill_wait:
            return MessageBatch(environment)
        with transaction.atomic(using=self._alias):
            ready = self._ready(environment)
            if connections[self._alias].features.has_select_for_update_skip_locked:
                ready = ready.select_for_update(skip_locked=True)
            rows = list(ready[:limit])
            now = database_now(self._alias)
            return self._lease(environment, rows, now, worker)

    def _lease(self, environment: str, rows: Sequence[QueueMessage], now: datetime, worker: str) -> MessageBatch:
        token = secrets.token_hex(16)
        table = QueueMessage.objects.using(self._alias)
        # A row that still has a lease here had a worker that did not come back in time.
        crashed = [row.pk for row in rows if row.leased_until is not None]
        if crashed:
            table.filter(pk__in=crashed).update(crashes=F("crashes") + 1)
        lost: list[Message] = []
        leased: list[Message] = []
        for row in rows:
            row.crashes += row.pk in crashed
            target = lost if row.crashes >= settings.QUEUE_MAX_CRASHES else leased
            target.append(_message(row, token))
        if lost:
            table.filter(pk__in=[message.id for message in lost]).update(
                parked_at=now,
                leased_until=None,
                lease_token="",
                last_error=f"its worker did not come back {settings.QUEUE_MAX_CRASHES} times",
            )
        if leased:
            table.filter(pk__in=[message.id for message in leased]).update(
                lease_token=token, leased_by=worker[:100], leased_until=now + timedelta(seconds=settings.QUEUE_LEASE)
            )
        return MessageBatch(environment, tuple(leased), tuple(replace(message, token="") for message in lost))

    async def acknowledge(self, message: Message) -> bool:
        """Delete a message that is done."""
        return await writers.run(lambda: bool(self._held(message).delete()[0]))

    async def retry_later(self, message: Message, reason: str, delay: timedelta) -> bool:
        """Give a message back after an error."""
        return await writers.run(self._give_back, message, delay, errors=F("errors") + 1, last_error=reason[:2000])

    async def release(self, message: Message) -> bool:
        """Give a message back uncounted."""
        return await writers.run(self._give_back, message, timedelta())

    def _give_back(self, message: Message, delay: timedelta, **columns: Any) -> bool:
        available_at = database_now(self._alias) + delay
        return bool(
            self._held(message).update(
                lease_token="", leased_by="", leased_until=None, available_at=available_at, **columns
            )
        )

    async def park(self, message: Message, reason: str) -> bool:
        """Set a message aside with the reason."""
        return await writers.run(
            lambda: bool(
                self._held(message).update(
                    lease_token="", leased_until=None, parked_at=Now(), last_error=reason[:2000], errors=F("errors") + 1
                )
            )
        )

    async def extend(self, messages: Sequence[Message]) -> set[int]:
        """Renew leases; a message whose lease has run out is not renewed, even if nobody has taken it yet."""
        return await writers.run(self._extend, tuple(messages))

    def _extend(self, messages: Sequence[Message]) -> set[int]:
        held: set[int] = set()
        by_token: dict[str, list[int]] = {}
        for message in messages:
            by_token.setdefault(message.token, []).append(message.id)
        until = database_now(self._alias) + timedelta(seconds=settings.QUEUE_LEASE)
        table = QueueMessage.objects.using(self._alias)
        with transaction.atomic(using=self._alias):
            for token, ids in by_token.items():
                rows = table.filter(pk__in=ids, lease_token=token, leased_until__gt=Now())
                if rows.update(leased_until=until):
                    held.update(table.filter(pk__in=ids, lease_token=token).values_list("pk", flat=True))
        return held

    async def status(self, environment: str) -> QueueStatus:
        """Count the messages of one environment."""
        return await writers.run(self.count, environment)

    def count(self, environment: str) -> QueueStatus:
        """Count the messages of one environment on the calling thread."""
        waiting = Q(parked_at__isnull=True, available_at__lte=Now()) & _FREE
        counted = self._rows(environment).aggregate(
            waiting=Count("id", filter=waiting),
            delayed=Count("id", filter=Q(parked_at__isnull=True, available_at__gt=Now()) & _FREE),
            leased=Count("id", filter=Q(parked_at__isnull=True, leased_until__gt=Now())),
            parked=Count("id", filter=Q(parked_at__isnull=False)),
            oldest_at=Min("available_at", filter=waiting),
        )
        return QueueStatus(**counted)


def get_queue(env: WorkerEnv) -> DatabaseQueue:
    """Return the queue of an environment; it lives in the environment's database, so that sending joins its
    transactions."""
    return DatabaseQueue(env.database)
