"""How an account is told: its confirmed address of mail and how often, and the secret address of its own feed."""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from submissions.notification_models import NotificationPreference, NotificationSubscription
from submissions.notifications.errors import NoSuchSubscription, SubscriptionRefused
from submissions.notifications.subscriptions import Scope, Way, Wish, add, remove, subscriptions
from submissions.outbox import Kind
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now

RHYTHMS: Final = {"at_once": timedelta(minutes=5), "daily": timedelta(days=1)}
"""How often somebody gets a mail at most; what comes in between is in the next one."""
_ASKED_AGAIN: Final = timedelta(minutes=10)
_CONFIRM: Final = "vskill.notifications.confirm"
_CONFIRM_SECONDS: Final = 24 * 3600
# What no part of a mail takes for something else: no quotes, and no words in the encoding of a header (RFC 2047).
_PLAIN: Final = re.compile(r"(?!.*=\?)[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]+")
_UNSUBSCRIBE: Final = "vskill.notifications.unsubscribe"


def preference(env: WorkerEnv, account: Any) -> NotificationPreference:
    """Return how an account is told; it is made where there is none."""
    rows = NotificationPreference.objects.using(env.database)
    found, _made = rows.get_or_create(
        namespace=env.name, owner_id=account.pk, defaults={"owner": account.get_username()}
    )
    return found


def ask_to_confirm(env: WorkerEnv, account: Any, address: str) -> None:
    """Note the address of an account, and let a mail ask there whether it is right; raise ``SubscriptionRefused``.

    Until somebody there says so, no other mail goes to it.
    """
    text = address.strip()
    try:
        validate_email(text)
    except ValidationError:
        raise SubscriptionRefused("That is no address of mail. Nothing was changed.") from None
    if _PLAIN.fullmatch(text.rpartition("@")[0]) is None:
        raise SubscriptionRefused("Of that address is no plain text before the @. Nothing was changed.")
    if not settings.MAIL_SERVER:
        raise SubscriptionRefused("This registry sends no mails: its operator has configured no server for them.")
    if not text.isascii() or len(text) > 254:
        raise SubscriptionRefused("An address has ASCII characters, 254 at most. Nothing was changed.")
    now = database_now(env.database)
    rows = NotificationPreference.objects.using(env.database).filter(pk=preference(env, account).pk)
    free = Q(asked_at=None) | Q(asked_at__lte=now - _ASKED_AGAIN)
    asked = rows.filter(free).update(address=text, asked_at=now, confirm_at=now, confirm_tries=0, confirmed_at=None)
    if not asked:
        raise SubscriptionRefused("A mail was sent within the last ten minutes. Wait for it, or try again later.")


def confirm_token(env: WorkerEnv, one: NotificationPreference) -> str:
    """Return what proves that its bearer reads the mails of an address."""
    return signing.dumps([env.name, one.owner_id, one.address], salt=_CONFIRM)


def confirm(env: WorkerEnv, token: str) -> NotificationPreference:
    """Let the address that ``token`` is about count, and return the preference; raise ``NoSuchSubscription``.

    The first time, its owner begins to hear how own submissions end.
    """
    try:
        name, owner_id, address = signing.loads(token, salt=_CONFIRM, max_age=_CONFIRM_SECONDS)
    except (signing.BadSignature, ValueError):
        name = owner_id = address = None
    with transaction.atomic(using=env.database):
        rows = NotificationPreference.objects.using(env.database).filter(namespace=env.name, owner_id=owner_id)
        one = rows.filter(address=address).first() if name == env.name else None
        if one is None:
            raise NoSuchSubscription("This link is not valid here, or no longer. Ask for a new one at your account.")
        if one.confirmed_at is None:
            rows.update(confirmed_at=Now(), confirm_at=None)
            _hear_of_own(env, one)
    return one


def _hear_of_own(env: WorkerEnv, one: NotificationPreference) -> None:
    known = NotificationSubscription.objects.using(env.database).filter(
        namespace=env.name, owner_id=one.owner_id, way=Way.MAIL
    )
    # Somebody who ended them once is not signed up again by another address.
    if not known.exists():
        NotificationSubscription.objects.using(env.database).create(
            namespace=env.name,
            owner_id=one.owner_id,
            owner=one.owner,
            way=Way.MAIL,
            scope=Scope.OWN,
            label="what you submitted",
            kinds=" ".join(Kind),
            created_by=one.owner,
        )


def set_rhythm(env: WorkerEnv, account: Any, rhythm: str) -> None:
    """Let an account have a mail at once, or daily; raise ``SubscriptionRefused``."""
    if rhythm not in RHYTHMS:
        raise SubscriptionRefused(f"Choose one of: {', '.join(RHYTHMS)}. Nothing was changed.")
    later: datetime | None = database_now(env.database) + RHYTHMS[rhythm] if rhythm == "daily" else None
    rows = NotificationPreference.objects.using(env.database).filter(pk=preference(env, account).pk)
    rows.update(rhythm=rhythm, next_at=later)


def add_mail(env: WorkerEnv, account: Any, wish: Wish) -> NotificationSubscription:
    """Let an account be told by mail; raise ``SubscriptionRefused``, also where its address is not confirmed."""
    if preference(env, account).confirmed_at is None:
        raise SubscriptionRefused("Confirm an address of mail first. Nothing was made.")
    return add(env, Way.MAIL, wish, owner=account)


def unsubscribe_token(env: WorkerEnv, owner_id: int) -> str:
    """Return what ends all mails to an account in an environment, for whoever has one of them."""
    return signing.dumps([env.name, owner_id], salt=_UNSUBSCRIBE)


def unsubscribe(env: WorkerEnv, token: str, *, dry_run: bool = False) -> str:
    """End all mails to the account of ``token``, and return its name; raise ``NoSuchSubscription``.

    Twice is once. ``dry_run`` only says whose they are.
    """
    try:
        name, owner_id = signing.loads(token, salt=_UNSUBSCRIBE)
    except (signing.BadSignature, ValueError):
        name, owner_id = "", None
    rows = NotificationPreference.objects.using(env.database).filter(namespace=env.name, owner_id=owner_id)
    one = rows.first() if name == env.name else None
    if one is None:
        raise NoSuchSubscription("This link is not valid here. Nothing was changed.")
    if not dry_run:
        mails = NotificationSubscription.objects.using(env.database).filter(
            namespace=env.name, owner_id=one.owner_id, way=Way.MAIL, removed_at__isnull=True
        )
        for mail in mails:
            remove(env, mail, actor=f"{one.owner} by the link of a mail")
    return one.owner


def new_feed(env: WorkerEnv, account: Any) -> str:
    """Give an account a feed of its own at a new secret address, which ends the old one; return the secret.

    A feed that has no subscription yet tells how own submissions end.
    """
    secret = secrets.token_urlsafe(32)
    rows = NotificationPreference.objects.using(env.database).filter(pk=preference(env, account).pk)
    rows.update(feed_digest=digest_of(secret))
    if not subscriptions(env, account).filter(way=Way.FEED).exists():
        add(env, Way.FEED, Wish(list(Kind), Scope.OWN), owner=account)
    return secret


def end_feed(env: WorkerEnv, account: Any) -> None:
    """End the secret address of an account's feed."""
    NotificationPreference.objects.using(env.database).filter(pk=preference(env, account).pk).update(feed_digest="")


def digest_of(secret: str) -> str:
    """Return what is kept of the secret of a feed, which has 256 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()
