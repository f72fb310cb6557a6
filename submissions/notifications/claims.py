"""Lease deliveries to one process, shared out in turn among their receivers, and write what each attempt came to."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from django.db import transaction
from django.db.models import Min, Q, QuerySet
from django.db.models.functions import Now

from submissions.notification_models import DeliveryAttempt, NotificationDelivery, NotificationSubscription
from submissions.notifications.errors import NoSuchSubscription
from submissions.notifications.rest import rest_asked
from submissions.notifications.room import OF_ONE_RECEIVER, Receiver, Room, host_of, receiver_of
from submissions.notifications.send import Answer
from submissions.notifications.subscriptions import Way, disable
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now

PENDING: Final = NotificationDelivery.PENDING
# Longer than an attempt may take; what a killed process had leased is attempted again after it.
LEASE: Final = timedelta(seconds=60)
# Each wait is three times the one before; all of them together are 27 hours.
_FIRST_WAIT: Final = timedelta(seconds=30)
MOST_ATTEMPTS: Final = 9
_SPREAD: Final = 0.2
DISABLED_AFTER: Final = timedelta(days=3)
_GONE: Final = 410
# Of the operators, and of accounts.
_MOST_RECEIVERS: Final = 200


def wait_after(attempts: int) -> timedelta:
    """Return the time until the next attempt after so many, up to a fifth shorter or longer."""
    wait: timedelta = _FIRST_WAIT * 3 ** (attempts - 1)
    return wait * random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311 - no secret


def due(env: WorkerEnv, way: Way = Way.WEBHOOK) -> QuerySet[NotificationDelivery]:
    """Return the deliveries of one way that are due and in nobody's hands, and whose receiver wants no rest."""
    rows = NotificationDelivery.objects.using(env.database)
    free = Q(leased_until=None) | Q(leased_until__lte=Now())
    awake = Q(subscription__rest_until=None) | Q(subscription__rest_until__lte=Now())
    return rows.filter(free, awake, namespace=env.name, state=PENDING, due_at__lte=Now(), subscription__way=way)


def count_due(env: WorkerEnv) -> int:
    """Return how many webhooks are due and in nobody's hands."""
    return due(env).count()


def claim(env: WorkerEnv, begun: Iterable[NotificationSubscription], most: int) -> list[NotificationDelivery]:
    """Lease at most ``most`` deliveries that are due, and return them with event and subscription.

    ``begun`` are the subscriptions of the attempts that are under way. Each receiver has its turn, as far as there is
    room for it (see ``Room``), so that a slow one, or an account with slow ones, holds up nobody else.
    """
    room = Room(receiver_of(one) for one in begun)
    receivers = _waiting_receivers(env)
    chosen: list[int] = []
    for _turn in range(OF_ONE_RECEIVER):
        for one in receivers:
            if len(chosen) >= most or not room.has_place_for(one):
                continue
            of_it = due(env).filter(subscription_id=one.number).exclude(pk__in=chosen)
            number = of_it.order_by("due_at", "pk").values_list("pk", flat=True).first()
            if number is not None:
                chosen.append(number)
                room.take(one)
    return lease(env, chosen)


def _waiting_receivers(env: WorkerEnv) -> list[Receiver]:
    """Return the receivers with something due, who waits the longest first; many of accounts hide none of operators."""
    columns = [f"subscription__{name}" for name in ("owner_id", "url", "failing_since")]
    waiting = due(env).values("subscription_id", *columns).annotate(first=Min("due_at")).order_by("first")
    found = [
        one
        for of_operators in (True, False)
        for one in waiting.filter(subscription__owner_id__isnull=of_operators)[:_MOST_RECEIVERS]
    ]
    return [
        Receiver(
            one["subscription_id"],
            one["subscription__owner_id"],
            host_of(one["subscription__url"]),
            one["subscription__failing_since"] is not None,
        )
        for one in sorted(found, key=lambda one: one["first"])
    ]


def lease(env: WorkerEnv, numbers: list[int]) -> list[NotificationDelivery]:
    """Lease those of some deliveries that are due and in nobody's hands, and return them."""
    if not numbers:
        return []
    token = uuid4().hex
    until = database_now(env.database) + LEASE
    # The condition again: of two processes that chose the same one, the second changes nothing.
    free = Q(leased_until=None) | Q(leased_until__lte=Now())
    rows = NotificationDelivery.objects.using(env.database)
    if not rows.filter(free, pk__in=numbers, state=PENDING).update(lease_token=token, leased_until=until):
        return []
    leased = rows.filter(lease_token=token).select_related("event", "subscription")
    return list(leased.prefetch_related("subscription__earlier_secrets").order_by("pk"))


def settle(env: WorkerEnv, one: NotificationDelivery, answer: Answer) -> str:
    """Write what an attempt of a leased delivery came to, and return the state that it is in then.

    Nothing is written where the lease has ended and somebody else has it; the answer is then ``lost``.
    """
    now = database_now(env.database)
    attempts = one.attempts + 1
    gone = answer.status == _GONE
    last = attempts >= MOST_ATTEMPTS or gone
    rest = rest_asked(answer, now)
    said = answer.said if rest is None else f"{answer.said}; it asks for a rest until {now + rest:%Y-%m-%d %H:%M} UTC"
    with transaction.atomic(using=env.database):
        held = NotificationDelivery.objects.using(env.database).filter(
            pk=one.pk, lease_token=one.lease_token, state=PENDING
        )
        ended = {"attempts": attempts, "said": said, "lease_token": "", "leased_until": None}
        if answer.taken:
            written = held.update(**ended, state=NotificationDelivery.DELIVERED, finished_at=now)
        elif last:
            written = held.update(**ended, state=NotificationDelivery.FAILED, finished_at=now)
        else:
            written = held.update(**ended, due_at=now + max(wait_after(attempts), rest or timedelta()))
        if not written:
            return "lost"
        DeliveryAttempt.objects.using(env.database).create(
            delivery_id=one.pk,
            status=answer.status,
            milliseconds=answer.milliseconds,
            answer=answer.text,
            error=answer.error,
        )
        if rest is not None:
            _let_rest(env, one.subscription, now + rest)
        _note_health(env, one.subscription, answer, now)
    if answer.taken:
        return NotificationDelivery.DELIVERED
    return NotificationDelivery.FAILED if last else PENDING


def withhold(env: WorkerEnv, one: NotificationDelivery, why: str) -> str:
    """Give a leased delivery up without an attempt, which says nothing of its receiver; return its state."""
    held = NotificationDelivery.objects.using(env.database).filter(
        pk=one.pk, lease_token=one.lease_token, state=PENDING
    )
    held.update(state=NotificationDelivery.FAILED, said=why, finished_at=Now(), lease_token="", leased_until=None)
    return NotificationDelivery.FAILED


def _let_rest(env: WorkerEnv, receiver: NotificationSubscription, until: datetime) -> None:
    rows = NotificationSubscription.objects.using(env.database).filter(pk=receiver.pk)
    # Of two that ask, the longer rest counts.
    rows.filter(Q(rest_until=None) | Q(rest_until__lt=until)).update(rest_until=until)


def _note_health(env: WorkerEnv, receiver: NotificationSubscription, answer: Answer, now: datetime) -> None:
    rows = NotificationSubscription.objects.using(env.database).filter(pk=receiver.pk)
    if answer.taken:
        rows.exclude(failing_since=None).update(failing_since=None)
        return
    rows.filter(failing_since=None).update(failing_since=now)
    if answer.status == _GONE:
        disable(env, receiver, "its receiver answered 410: it wants no more")
        return
    since = rows.values_list("failing_since", flat=True).first()
    if since is not None and now - since >= DISABLED_AFTER:
        disable(env, receiver, f"nothing could be delivered since {since:%Y-%m-%d %H:%M} UTC; last: {answer.said}")


def redeliver(env: WorkerEnv, number: int) -> NotificationDelivery:
    """Let a delivery be attempted again from the beginning, under the same id, and return it.

    Raises ``NoSuchSubscription`` where there is none, or its subscription is disabled or removed.
    """
    rows = NotificationDelivery.objects.using(env.database).filter(namespace=env.name, pk=number)
    one = rows.select_related("subscription").first()
    if one is None or one.subscription.removed_at is not None:
        raise NoSuchSubscription(f"There is no delivery {number} to send again. Nothing was changed.")
    if one.subscription.disabled_at is not None:
        raise NoSuchSubscription(
            f"Its webhook {one.subscription_id} is disabled ({one.subscription.disabled_because}). Enable it first; "
            "nothing was changed."
        )
    # One that is being sent at this moment is left alone: it is settled in a moment.
    free = Q(leased_until=None) | Q(leased_until__lte=Now())
    rows.filter(free).update(
        state=PENDING, attempts=0, due_at=Now(), finished_at=None, lease_token="", leased_until=None
    )
    return one
