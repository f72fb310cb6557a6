"""Write mails: plain text, one for all that is due, with a way out that needs no sign-in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse

from submissions.notification_models import NotificationDelivery, NotificationPreference, NotificationSubscription
from submissions.notifications.preferences import confirm_token, unsubscribe_token
from submissions.notifications.texts import page_of, reason_of, title_of
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible

_LONGEST_SUBJECT: Final = 150


def mail_of(env: WorkerEnv, one: NotificationPreference, due: Sequence[NotificationDelivery]) -> EmailMessage:
    """Return the mail that tells an account of all events that are ``due``, of which there is at least one."""
    titles = [title_of(each.event) for each in due]
    host = _host(env)
    subject = titles[0] if len(due) == 1 else f"{len(due)} notifications of {host}: {titles[0]} …"
    parts = [
        "\n".join(part for part in (title, reason_of(each.event), page_of(env, each.event)) if part)
        for title, each in zip(titles, due, strict=True)
    ]
    unsubscribe = _address(env, "submissions:unsubscribe", unsubscribe_token(env, one.owner_id))
    chosen = ", ".join(dict.fromkeys(each.subscription.label for each in due))
    parts.append(
        f"-- \nYou chose to hear of: {visible(chosen, 300)}.\n"
        f"Change that: {_address(env, 'submissions:notifications')}\nNo more mails: {unsubscribe}"
    )
    return EmailMessage(
        subject=visible(subject, _LONGEST_SUBJECT),
        body="\n\n".join(parts) + "\n",
        from_email=settings.MAIL_FROM,
        to=[one.address],
        headers={
            # The same for a repeat of the same mail.
            "Message-ID": f"<{due[0].key}.{len(due)}@{host}>",
            "Auto-Submitted": "auto-generated",
            "List-Unsubscribe": f"<{unsubscribe}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        },
    )


def of_disabled_webhook(env: WorkerEnv, one: NotificationSubscription, to: NotificationPreference) -> EmailMessage:
    """Return the mail that tells an account that a webhook of it was disabled, and why."""
    host = _host(env)
    unsubscribe = _address(env, "submissions:unsubscribe", unsubscribe_token(env, to.owner_id))
    notifications = _address(env, "submissions:notifications")
    body = (
        f"Nothing more is sent to your webhook {visible(one.url, 1000)}\n"
        f"because {visible(one.disabled_because, 600)}.\n\n"
        f"What it missed is kept in the log. Mend its receiver, then enable it here, or remove it:\n{notifications}\n\n"
        f"-- \nNo more mails: {unsubscribe}\n"
    )
    return EmailMessage(
        subject=f"Your webhook at {host} is disabled",
        body=body,
        from_email=settings.MAIL_FROM,
        to=[to.address],
        headers={
            # The same for a repeat of the same mail.
            "Message-ID": f"<webhook-{one.pk}.{one.disabled_at:%Y%m%d%H%M%S%f}@{host}>",
            "Auto-Submitted": "auto-generated",
            "List-Unsubscribe": f"<{unsubscribe}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        },
    )


def confirmation(env: WorkerEnv, one: NotificationPreference) -> EmailMessage:
    """Return the mail that asks whether its reader wants notifications at this address."""
    link = _address(env, "submissions:confirm-address", confirm_token(env, one))
    body = (
        f"{visible(one.owner, 150)} asked {env.public_url} to send notifications to this address.\n\n"
        f"If that is you, open this page and confirm it within a day:\n{link}\n\n"
        "If not, do nothing. No other mail comes then.\n"
    )
    return EmailMessage(
        subject=f"Confirm your address for {_host(env)}",
        body=body,
        from_email=settings.MAIL_FROM,
        to=[one.address],
        headers={"Auto-Submitted": "auto-generated"},
    )


def _host(env: WorkerEnv) -> str:
    return urlsplit(env.public_url).hostname or "localhost"


def _address(env: WorkerEnv, name: str, *arguments: str) -> str:
    return env.public_url + reverse(name, args=arguments)
