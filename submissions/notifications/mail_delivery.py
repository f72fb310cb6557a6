"""Send the mails that are due: one to each account, with everything that it is to hear, and confirmations."""

from __future__ import annotations

import logging
import smtplib
from datetime import timedelta
from time import monotonic
from typing import Any, Final

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.db.models import Q
from django.db.models.functions import Now

from submissions.notification_models import NotificationDelivery, NotificationPreference
from submissions.notifications.audience import accounts_of, may_hear
from submissions.notifications.claims import due, lease, settle, withhold
from submissions.notifications.mails import confirmation, mail_of
from submissions.notifications.preferences import RHYTHMS
from submissions.notifications.send import Answer
from submissions.notifications.subscriptions import Way
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.clock import database_now

logger = logging.getLogger(__name__)

# Events of one mail; more are in the next one.
_MOST_EVENTS: Final = 100
_MOST_TRIES: Final = 5
_CONFIRM_AGAIN: Final = timedelta(minutes=2)
_MOST_AT_A_TIME: Final = 50


def send_mails(env: WorkerEnv, *, ends_at: float) -> tuple[int, list[str]]:
    """Send what is due by mail until ``ends_at``, a time of ``monotonic``.

    Return the number of mails, and the state that each delivery in them came to. Two at once share the accounts out.
    """
    if not settings.MAIL_SERVER:
        return 0, []
    mails, states = _send_confirmations(env), list[str]()
    for one in _accounts(env):
        if monotonic() >= ends_at:
            break
        if claimed := _claim(env, one):
            mails += _send(env, one, claimed, states)
    return mails, states


def _accounts(env: WorkerEnv) -> list[NotificationPreference]:
    owners = due(env, Way.MAIL).values_list("subscription__owner_id", flat=True).distinct()
    rows = NotificationPreference.objects.using(env.database).filter(namespace=env.name, owner_id__in=owners)
    return list(rows.filter(_free(), confirmed_at__isnull=False).order_by("next_at", "pk"))


def _free() -> Q:
    return Q(next_at=None) | Q(next_at__lte=Now())


def _claim(env: WorkerEnv, one: NotificationPreference) -> list[NotificationDelivery]:
    """Lease what one account is to hear, where nobody else has begun to tell it."""
    rows = NotificationPreference.objects.using(env.database).filter(pk=one.pk)
    if not rows.filter(_free()).update(next_at=database_now(env.database) + RHYTHMS[one.rhythm]):
        return []
    wanted = due(env, Way.MAIL).filter(subscription__owner_id=one.owner_id).order_by("pk")
    return lease(env, list(wanted.values_list("pk", flat=True)[:_MOST_EVENTS]))


def _send(env: WorkerEnv, one: NotificationPreference, claimed: list[NotificationDelivery], states: list[str]) -> int:
    account = accounts_of([one.owner_id]).get(one.owner_id)
    told: dict[int, NotificationDelivery] = {}
    also: list[NotificationDelivery] = []
    for each in claimed:
        if not may_hear(env, account, each.event):
            states.append(withhold(env, each, "its owner may not see it any more"))
        elif each.event_id in told:
            # Two subscriptions, one event.
            also.append(each)
        else:
            told[each.event_id] = each
    if not told:
        return 0
    answer = sent(mail_of(env, one, list(told.values())))
    for each in (*told.values(), *also):
        states.append(settle(env, each, answer))
    return int(answer.taken)


def sent(message: EmailMessage) -> Answer:
    """Send one mail, and return how the mail server answered."""
    began = monotonic()
    error = ""
    try:
        options: dict[str, Any] = settings.MAIL_SERVER
        with get_connection(**options) as server:
            server.send_messages([message])
    except smtplib.SMTPRecipientsRefused as refused:
        codes = ", ".join(str(code) for code, _text in refused.recipients.values())
        error = f"the mail server refused the address with status {codes}"
    except smtplib.SMTPResponseException as refused:
        error = f"the mail server answered with status {refused.smtp_code}"
    except ValueError as failed:
        # Of this one mail alone, whose address or a header cannot be written; the others are sent all the same.
        logger.warning("a mail cannot be written: %s", visible(type(failed).__name__, 80))
        error = "the mail cannot be written, probably because of its address: let its owner confirm another one"
    except (smtplib.SMTPException, OSError) as failed:
        error = f"the mail server could not be used: {visible(type(failed).__name__, 80)}"
    took = round((monotonic() - began) * 1000)
    return Answer(None, took, error=error) if error else Answer(250, took)


def _send_confirmations(env: WorkerEnv) -> int:
    rows = NotificationPreference.objects.using(env.database)
    waiting = rows.filter(namespace=env.name, confirm_at__lte=Now(), confirm_tries__lt=_MOST_TRIES)
    asked = 0
    for one in waiting.order_by("confirm_at")[:_MOST_AT_A_TIME]:
        later = database_now(env.database) + _CONFIRM_AGAIN
        # Also the lease: who comes second finds another time.
        mine = rows.filter(pk=one.pk, confirm_at=one.confirm_at)
        if not mine.update(confirm_at=later, confirm_tries=one.confirm_tries + 1):
            continue
        if sent(confirmation(env, one)).taken:
            rows.filter(pk=one.pk, confirm_at=later).update(confirm_at=None)
            asked += 1
    return asked
