"""What operators are shown of webhooks and of what was sent: never a secret."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from submissions.notification_models import DeliveryAttempt, NotificationDelivery, NotificationSubscription
from submissions.notifications.rotation import earlier_signs_until
from submissions.notifications.subscriptions import Way
from submissions.notifications.texts import TYPES
from submissions.outbox import Kind
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat


def webhooks(env: WorkerEnv) -> QuerySet[NotificationSubscription]:
    """Return all webhooks of an environment, those of persons too, the newest first."""
    rows = NotificationSubscription.objects.using(env.database)
    rows = rows.filter(namespace=env.name, way=Way.WEBHOOK, removed_at__isnull=True)
    return rows.prefetch_related("earlier_secrets").order_by("-id")


def log_of(env: WorkerEnv, number: int | None = None, state: str = "") -> QuerySet[NotificationDelivery]:
    """Return the deliveries of an environment, or of one subscription, or in one state, the newest first."""
    rows = NotificationDelivery.objects.using(env.database).filter(namespace=env.name).select_related("event")
    if number is not None:
        rows = rows.filter(subscription_id=number)
    return (rows.filter(state=state) if state else rows).order_by("-id")


def state_of(one: NotificationSubscription, now: datetime) -> str:
    """Return in a few words how a subscription is ``now``."""
    if one.disabled_at is not None:
        return f"disabled: {one.disabled_because}"
    failing = f"failing since {one.failing_since:%Y-%m-%d %H:%M} UTC" if one.failing_since is not None else "in order"
    if one.rest_until is not None and one.rest_until > now:
        return f"{failing}, left alone until {one.rest_until:%Y-%m-%d %H:%M} UTC, as its receiver asked"
    return failing


def subscription_as_json(one: NotificationSubscription, now: datetime) -> dict[str, Any]:
    """Return what a list shows of a subscription ``now``."""
    until = earlier_signs_until(one, now)
    return {
        "id": one.pk,
        "way": one.way,
        "url": one.url,
        "scope": one.label,
        "events": one.kinds.split(),
        "owner": one.owner,
        "createdBy": one.created_by,
        "createdAt": isoformat(one.created_at),
        "state": state_of(one, now),
        "earlierSecretSignsUntil": isoformat(until) if until is not None else None,
    }


def type_of(kind: str) -> str:
    """Return how a webhook calls a kind of event."""
    return TYPES[Kind(kind)] if kind in set(Kind) else kind


def delivery_as_json(one: NotificationDelivery) -> dict[str, Any]:
    """Return what a list shows of a delivery."""
    return {
        "id": one.pk,
        "webhook": one.subscription_id,
        "key": one.key,
        "type": type_of(one.event.kind),
        "state": one.state,
        "attempts": one.attempts,
        "said": one.said,
        "dueAt": isoformat(one.due_at) if one.state == NotificationDelivery.PENDING else None,
        "finishedAt": isoformat(one.finished_at) if one.finished_at is not None else None,
    }


def attempt_as_json(one: DeliveryAttempt) -> dict[str, Any]:
    """Return what the log shows of one attempt."""
    return {
        "at": isoformat(one.at),
        "status": one.status,
        "milliseconds": one.milliseconds,
        "answer": one.answer,
        "error": one.error,
    }
