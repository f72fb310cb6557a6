"""Answer by mail who has forgotten a password: with a link by which another one is chosen."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage

from submissions.notifications.mail_delivery import sent
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.sign_in.forgotten import accounts_for, answered, link_for, take_due


def send_password_mails(env: WorkerEnv) -> int:
    """Send the mails that were asked for, and return how many; two at once share them out."""
    count = 0
    for one in take_due(env):
        taken = [sent(_mail(env, account)).taken for account in accounts_for(env, one)]
        count += sum(taken)
        if all(taken):
            answered(one)
    return count


def _mail(env: WorkerEnv, account: Any) -> EmailMessage:
    host = urlsplit(env.public_url).hostname or "localhost"
    name = visible(account.get_username(), 150)
    body = (
        f"Somebody wrote at {env.public_url} that the password of {name} is forgotten.\n\n"
        f"If that is you, choose another one within an hour:\n{link_for(env, account)}\n\n"
        "If not, do nothing. The password stays as it is.\n"
    )
    return EmailMessage(
        subject=f"A new password for {host}",
        body=body,
        from_email=settings.MAIL_FROM,
        to=[account.email],
        headers={"Auto-Submitted": "auto-generated"},
    )
