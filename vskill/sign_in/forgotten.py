"""Who has forgotten a password: what was typed is noted, whoever that is, and answered by mail afterwards.

The page that notes it looks nobody up, so neither its answer nor its time tells whether there is such an account.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from vskill.accounts.limits import limit_of
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now
from vskill.models import PasswordRequest

LONGEST_TYPED: Final = 254
ASKED_AGAIN: Final = timedelta(minutes=10)
"""How long nothing more is sent for what was typed."""
MOST_WAITING: Final = 500
_MOST_TRIES: Final = 5
_TRIED_AGAIN: Final = timedelta(minutes=2)
# Most of what is typed by strangers is nobody's, and costs a look.
_MOST_AT_A_TIME: Final = 200
# An address that an admin gave to several accounts.
_MOST_ACCOUNTS: Final = 5
# Accounts are in the database of the installation.
_DATABASE: Final = "default"


def ask(env: WorkerEnv, typed: str) -> bool:
    """Note that the password of whoever has this name or address was forgotten.

    Return False, and note nothing, where too many wait already. What was noted within ``ASKED_AGAIN`` is there still.
    """
    key = key_of(typed)
    if PasswordRequest.objects.filter(environment=env.name, sent_at=None).count() >= MOST_WAITING:
        return False
    PasswordRequest.objects.bulk_create(
        [PasswordRequest(environment=env.name, typed=key, due_at=database_now(_DATABASE))], ignore_conflicts=True
    )
    return True


def key_of(typed: str) -> str:
    """Return what a name or an address is compared by: case and blanks around it do not count."""
    return typed.strip().lower()[:LONGEST_TYPED]


def take_due(env: WorkerEnv) -> list[PasswordRequest]:
    """Return what is to be answered now, leased to the caller for two minutes, and forget what is over."""
    now = database_now(_DATABASE)
    rows = PasswordRequest.objects.filter(environment=env.name)
    rows.filter(Q(sent_at__lte=now - ASKED_AGAIN) | Q(tries__gte=_MOST_TRIES, due_at__lte=now)).delete()
    taken = []
    for one in rows.filter(sent_at=None, due_at__lte=now).order_by("due_at")[:_MOST_AT_A_TIME]:
        # Who comes second finds another time.
        if rows.filter(pk=one.pk, due_at=one.due_at).update(due_at=now + _TRIED_AGAIN, tries=one.tries + 1):
            taken.append(one)
    return taken


def answered(one: PasswordRequest) -> None:
    """Note that a request was answered, or that there is nobody to answer."""
    PasswordRequest.objects.filter(pk=one.pk).update(sent_at=Now())


def accounts_for(env: WorkerEnv, one: PasswordRequest) -> list[Any]:
    """Return the accounts that a request can be about: with a password, an address, and a place in the environment."""
    rows = get_user_model()._default_manager.filter(is_active=True).exclude(email="")
    named = rows.filter(Q(username__iexact=one.typed) | Q(email__iexact=one.typed)).order_by("pk")[:_MOST_ACCOUNTS]
    # PostgreSQL takes some other letters for those of a name, and each spelling would bring a mail of its own.
    meant = [
        account for account in named if key_of(one.typed) in (key_of(account.get_username()), key_of(account.email))
    ]
    return [
        account for account in meant if account.has_usable_password() and _writable(account) and _here(account, env)
    ]


def _writable(account: Any) -> bool:
    try:
        validate_email(account.email)
    except ValidationError:
        return False
    return bool(account.email.isascii())


def _here(account: Any, env: WorkerEnv) -> bool:
    limit = limit_of(account)
    return limit is None or env.name in limit


def link_for(env: WorkerEnv, account: Any) -> str:
    """Return the address at which a new password is chosen; it counts once, for an hour, and for this password."""
    number = urlsafe_base64_encode(force_bytes(account.pk))
    token = default_token_generator.make_token(account)
    return env.public_url + reverse("new-password", args=[number, token])
