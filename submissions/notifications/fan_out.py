"""Make a delivery of each event in the outbox for everybody who wants to hear of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from uuid import uuid4

from django.db import connections, transaction
from django.db.models.functions import Now

from submissions.notification_models import NotificationDelivery, NotificationEvent
from submissions.notifications.audience import listeners, submitter_of_skill
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now

_BATCH: Final = 100
# Events and their log.
KEPT_FOR: Final = timedelta(days=90)
_MOST_FORGOTTEN: Final = 1_000


def new_key() -> str:
    """Return a new id of a delivery, which receivers know it by."""
    return f"msg_{uuid4().hex}"


def waiting_events(env: WorkerEnv) -> int:
    """Return how many events nobody was told of yet."""
    return NotificationEvent.objects.using(env.database).filter(namespace=env.name, fanned_out_at=None).count()


def fan_out(env: WorkerEnv) -> tuple[int, int]:
    """Work off some of the outbox; return how many events were taken out of it, and how many deliveries were made.

    An event leaves the outbox in the transaction that makes its deliveries. Two at once share the outbox out.
    """
    with transaction.atomic(using=env.database):
        skips = connections[env.database].features.has_select_for_update_skip_locked
        rows = NotificationEvent.objects.using(env.database).select_for_update(skip_locked=skips)
        events = list(rows.filter(namespace=env.name, fanned_out_at=None).order_by("id")[:_BATCH])
        made = sum(_fan_out_one(env, event) for event in events)
        return len(events), made


def _fan_out_one(env: WorkerEnv, event: NotificationEvent) -> int:
    if not event.submitter:
        event.submitter, event.submitter_id = submitter_of_skill(env, event)
    deliveries = [
        NotificationDelivery(namespace=env.name, event=event, subscription=one, key=new_key())
        for one in listeners(env, event)
    ]
    NotificationDelivery.objects.using(env.database).bulk_create(deliveries)
    NotificationEvent.objects.using(env.database).filter(pk=event.pk).update(
        fanned_out_at=Now(), submitter=event.submitter, submitter_id=event.submitter_id
    )
    return len(deliveries)


def forget_old(env: WorkerEnv) -> int:
    """Delete some of the events that were told long ago, with their log, and return how many."""
    rows = NotificationEvent.objects.using(env.database)
    old = rows.filter(namespace=env.name, created_at__lt=database_now(env.database) - KEPT_FOR)
    numbers = list(
        old.exclude(fanned_out_at=None).order_by("created_at").values_list("pk", flat=True)[:_MOST_FORGOTTEN]
    )
    if numbers:
        rows.filter(pk__in=numbers).delete()
    return len(numbers)
