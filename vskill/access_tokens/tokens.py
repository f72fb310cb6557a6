"""Make tokens, find whose one is, and revoke them; every function here waits for the database."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import DatabaseError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.scopes import Scope, as_text
from vskill.access_tokens.token_form import is_token, new_token, without_tokens
from vskill.accounts.limits import limit_of
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.hidden_characters import visible
from vskill.kv.threads import writers

logger = logging.getLogger(__name__)

DEFAULT_DAYS: Final = 90
MOST_DAYS: Final = 366
# Of one user in one environment. Whoever needs more forgets to revoke them.
MOST_ACTIVE: Final = 50
LONGEST_NAME: Final = 100
_USE_IS_WRITTEN: Final = timedelta(hours=1)
_AGAIN: Final = "Make a new one, or ask an operator for one."


class TokenRefused(VskillError):
    """A token that opens nothing; nothing was done. The text never holds the token."""

    code = "invalid_token"


class TokenNotMade(VskillError):
    """A token that cannot be made as it was asked for; nothing was made."""

    code = "token_not_made"


def make_token(
    env: WorkerEnv, user: Any, *, name: str, scopes: Collection[Scope], days: int = DEFAULT_DAYS
) -> tuple[AccessToken, str]:
    """Make a token of ``user`` in ``env``; return its row, and the token itself, which nobody can ask for again.

    ``days`` is how long it is valid. Raises ``TokenNotMade``.
    """
    shown = without_tokens(visible(name.replace("\0", "").strip(), LONGEST_NAME))
    if not shown:
        raise TokenNotMade("A token has a name, by which you find it when you want to revoke it. Nothing was made.")
    if not 1 <= days <= MOST_DAYS:
        raise TokenNotMade(f"A token is valid for 1 to {MOST_DAYS} days. Nothing was made.")
    if not may_work_in(env, user):
        raise TokenNotMade(f"{user.get_username()} may not work in {env.name!r}. Nothing was made.")
    token = new_token()
    now = timezone.now()
    with transaction.atomic(using=AccessToken.objects.db):
        # Whoever makes tokens at the same time waits for this row, so that together they make no more than the limit.
        get_user_model()._default_manager.select_for_update().filter(pk=user.pk).first()
        if active_tokens(env, user).count() >= MOST_ACTIVE:
            raise TokenNotMade(f"{user.get_username()} has {MOST_ACTIVE} tokens here. Revoke one first.")
        row = AccessToken.objects.create(
            user=user,
            namespace=env.name,
            name=shown,
            digest=_digest(token),
            scopes=as_text(scopes),
            created_at=now,
            expires_at=now + timedelta(days=days),
        )
    logger.info("token %d was made for %s: %s", row.pk, visible(user.get_username(), 60), row.scopes)
    return row, token


def tokens_of(env: WorkerEnv) -> QuerySet[AccessToken]:
    """Return the tokens of an environment with their users, the newest first."""
    return AccessToken.objects.filter(namespace=env.name).select_related("user").order_by("-pk")


def active_tokens(env: WorkerEnv, user: Any) -> QuerySet[AccessToken]:
    """Return the tokens of a user that are valid in an environment."""
    return tokens_of(env).filter(user=user, revoked_at=None, expires_at__gt=timezone.now())


def valid_token(env: WorkerEnv, text: str) -> AccessToken:
    """Return the row of the token ``text``, with its user; raises ``TokenRefused`` where it opens nothing in ``env``.

    That it was used is written at most once an hour, and nobody waits for that.
    """
    row = None
    if is_token(text):
        row = AccessToken.objects.select_related("user").filter(digest=_digest(text)).first()
    if row is None or row.namespace != env.name:
        raise TokenRefused(f"This registry knows no such token. {_AGAIN}")
    if row.revoked_at is not None:
        raise TokenRefused(f"This token was revoked on {_day(row.revoked_at)}. {_AGAIN}")
    now = timezone.now()
    if row.expires_at <= now:
        raise TokenRefused(f"This token expired on {_day(row.expires_at)}. {_AGAIN}")
    if not may_work_in(env, row.user):
        raise TokenRefused("The account of this token is closed here. Ask an operator.")
    if row.last_used_at is None or now - row.last_used_at >= _USE_IS_WRITTEN:
        _used(row.pk, now)
    return row


def revoke(row: AccessToken, *, actor: str, reason: str) -> bool:
    """End a token at once; return whether it was valid until now, or at least not revoked."""
    ended = AccessToken.objects.filter(pk=row.pk, revoked_at=None).update(
        revoked_at=timezone.now(), revoked_by=visible(actor, 150), revoked_because=without_tokens(visible(reason))
    )
    if ended:
        logger.info("token %d was revoked by %s", row.pk, visible(actor, 60))
    return bool(ended)


def may_work_in(env: WorkerEnv, user: Any) -> bool:
    """Return whether a user is active and may work in an environment."""
    limit = limit_of(user)
    return bool(user.is_active) and (limit is None or env.name in limit)


def _used(number: int, now: datetime) -> None:
    def write() -> None:
        # Again with the condition: of many requests at once, one writes.
        stale = Q(last_used_at=None) | Q(last_used_at__lte=now - _USE_IS_WRITTEN)
        try:
            AccessToken.objects.filter(stale, pk=number).update(last_used_at=now)
        except DatabaseError as error:
            logger.warning("that token %d was used could not be written: %s", number, error)

    try:
        writers.submit_shared(write)
    except RuntimeError as error:
        # No thread could be started.
        logger.warning("that token %d was used could not be written: %s", number, error)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}"
