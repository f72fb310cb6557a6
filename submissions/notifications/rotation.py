"""Give a webhook a new secret while the one before signs too, so that its receiver is changed without a gap."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from submissions.notification_models import EarlierSecret, NotificationSubscription
from submissions.notifications.errors import NoSuchSubscription, SecretUnreadable, SubscriptionRefused
from submissions.notifications.signing import new_secret, opened, sealed
from submissions.notifications.subscriptions import Way
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.clock import database_now

logger = logging.getLogger(__name__)

HOURS: Final = 24
"""How long the secret before signs too, where nobody says otherwise."""
MOST_HOURS: Final = 168
# A secret that was lost as it was shown is replaced again; the receiver has the first one all the while.
MOST_EARLIER: Final = 2


def rotate(env: WorkerEnv, one: NotificationSubscription, *, actor: str, hours: int = HOURS) -> str:
    """Give a webhook a new secret, and return it; it is shown this once.

    The secret that it had signs too for so many ``hours``, 0 to ``MOST_HOURS``; with 0, no earlier one signs any more.
    Raises ``SubscriptionRefused`` and ``NoSuchSubscription``; nothing was changed then.
    """
    if not 0 <= hours <= MOST_HOURS:
        raise SubscriptionRefused(f"The secret before signs for 0 to {MOST_HOURS} hours. Nothing was changed.")
    secret = new_secret()
    with transaction.atomic(using=env.database):
        # Two at once wait for each other here, so that no secret is lost between them.
        rows = NotificationSubscription.objects.using(env.database).select_for_update()
        found = rows.filter(namespace=env.name, pk=one.pk, way=Way.WEBHOOK, removed_at__isnull=True).first()
        if found is None:
            raise NoSuchSubscription("There is no such webhook. Nothing was changed.")
        now = database_now(env.database)
        kept = hours > 0 and _readable(found.secret)
        earlier = EarlierSecret.objects.using(env.database).filter(subscription_id=one.pk)
        if hours == 0:
            earlier.delete()
        elif kept and earlier.filter(signs_until__gt=now).count() >= MOST_EARLIER:
            raise SubscriptionRefused(
                f"{MOST_EARLIER} earlier secrets of it sign still. End them first, or wait. Nothing was changed."
            )
        elif kept:
            EarlierSecret.objects.using(env.database).create(
                subscription_id=one.pk, secret=found.secret, signs_until=now + timedelta(hours=hours)
            )
        rows.filter(pk=one.pk).update(secret=sealed(secret))
    logger.info("webhook %d got a new secret by %s", one.pk, visible(actor, 60))
    return secret


def end_earlier(env: WorkerEnv, one: NotificationSubscription, *, actor: str) -> bool:
    """Let the newest secret of a webhook alone sign from now on; return whether another one did until now."""
    earlier = EarlierSecret.objects.using(env.database).filter(subscription_id=one.pk)
    ended, _each = earlier.delete()
    if ended:
        logger.info("the secrets before of webhook %d were ended by %s", one.pk, visible(actor, 60))
    return bool(ended)


def signing_secrets(one: NotificationSubscription, now: datetime) -> list[str]:
    """Return the secrets that sign what is sent to a webhook ``now``, the newest first.

    Raises ``SecretUnreadable`` where the newest one cannot be read; an earlier one that cannot signs no more.
    """
    found = [opened(one.secret)]
    for earlier in _signing(one, now):
        try:
            found.append(opened(earlier.secret))
        except SecretUnreadable:
            logger.warning("an earlier secret of webhook %d cannot be read, and does not sign", one.pk)
    return found


def earlier_signs_until(one: NotificationSubscription, now: datetime) -> datetime | None:
    """Return until when an earlier secret of a webhook signs too, ``None`` where none does ``now``."""
    return max((earlier.signs_until for earlier in _signing(one, now)), default=None)


def forget_earlier(env: WorkerEnv) -> None:
    """Delete the secrets that sign no more."""
    ended = EarlierSecret.objects.using(env.database).filter(subscription__namespace=env.name, signs_until__lte=Now())
    ended.delete()


def _readable(stored: str) -> bool:
    try:
        opened(stored)
    except SecretUnreadable:
        return False
    return True


def _signing(one: NotificationSubscription, now: datetime) -> Sequence[EarlierSecret]:
    found = [earlier for earlier in one.earlier_secrets.all() if earlier.signs_until > now]
    return sorted(found, key=lambda earlier: earlier.pk, reverse=True)
