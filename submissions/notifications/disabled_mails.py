"""Tell the owner of a webhook by mail that it was disabled, once."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db.models.functions import Now

from submissions.notification_models import NotificationPreference, NotificationSubscription
from submissions.notifications.audience import accounts_of
from submissions.notifications.mail_delivery import sent
from submissions.notifications.mails import of_disabled_webhook
from submissions.notifications.subscriptions import Way
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now

_MOST_TRIES: Final = 5
_AGAIN: Final = timedelta(minutes=2)
_MOST_AT_A_TIME: Final = 50


def send_disabled(env: WorkerEnv) -> int:
    """Send the mails about webhooks that were disabled and whose owners were not told yet; return how many.

    An owner is told who has confirmed an address and has not ended all mails. Two at once share them out.
    """
    rows = NotificationSubscription.objects.using(env.database)
    waiting = rows.filter(namespace=env.name, tell_at__lte=Now())
    told = 0
    for one in waiting.order_by("tell_at")[:_MOST_AT_A_TIME]:
        later = database_now(env.database) + _AGAIN
        # Also the lease: who comes second finds another time.
        mine = rows.filter(pk=one.pk, tell_at=one.tell_at)
        if not mine.update(tell_at=later, tell_tries=one.tell_tries + 1):
            continue
        to = _mail_to(env, one.owner_id)
        taken = to is not None and sent(of_disabled_webhook(env, one, to)).taken
        if to is None or taken or one.tell_tries + 1 >= _MOST_TRIES:
            rows.filter(pk=one.pk, tell_at=later).update(tell_at=None)
        told += taken
    return told


def _mail_to(env: WorkerEnv, owner_id: int | None) -> NotificationPreference | None:
    """Return how an account gets mails, ``None`` where it gets none."""
    account = accounts_of([owner_id]).get(owner_id) if owner_id is not None else None
    if account is None or not account.is_active:
        return None
    wanted = NotificationSubscription.objects.using(env.database).filter(
        namespace=env.name, owner_id=account.pk, way=Way.MAIL, removed_at__isnull=True
    )
    rows = NotificationPreference.objects.using(env.database).filter(namespace=env.name, owner_id=account.pk)
    return rows.filter(confirmed_at__isnull=False).first() if wanted.exists() else None
