"""Who is told of what: make subscriptions, list them and end them; every function here waits for the database."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from marketplace.catalog import find_skill_sync
from submissions.notification_models import EarlierSecret, NotificationDelivery, NotificationSubscription
from submissions.notifications.errors import NoSuchSubscription, SubscriptionRefused
from submissions.notifications.send import webhook_policy
from submissions.notifications.signing import new_secret, sealed
from submissions.outbox import Kind
from submissions.source.hosts import normalise_host
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.clock import database_now
from vskill.public_hosts import refuse_private_name

logger = logging.getLogger(__name__)

# Of one person, and of the operators of an environment.
MOST_OF_ONE: Final = 50
# Each is an address that this server is made to call.
MOST_WEBHOOKS_OF_ACCOUNT: Final = 5
_LONGEST_URL: Final = 1000


class Way(StrEnum):
    """How somebody is told."""

    WEBHOOK = "webhook"
    MAIL = "mail"
    FEED = "feed"


class Scope(StrEnum):
    """What somebody is told of: everything that the account may see, its own, one publisher's, or one skill."""

    EVERYTHING = "everything"
    OWN = "own"
    PUBLISHER = "publisher"
    SKILL = "skill"


@dataclass(frozen=True)
class Wish:
    """What somebody wants to be told: the kinds of events, of what, and for a publisher or a skill of which one.

    ``of`` is the publisher as ``host/owner``, or the slug of a skill.
    """

    kinds: Collection[str]
    scope: str = Scope.EVERYTHING
    of: str = ""


def add_webhook(
    env: WorkerEnv, url: str, wish: Wish, *, created_by: str, owner: Any = None
) -> tuple[NotificationSubscription, str]:
    """Let webhooks be sent to ``url``; return the subscription, and its secret, which is shown this once.

    ``owner`` is the account that wants them, ``None`` for the operators; ``created_by`` is who asked. Raises
    ``SubscriptionRefused``.
    """
    address = checked_url(env, url, of_operators=owner is None)
    secret = new_secret()
    made = _add(env, Way.WEBHOOK, wish, created_by=created_by, owner=owner, url=address, secret=sealed(secret))
    logger.info("webhook %d was added by %s", made.pk, visible(created_by, 60))
    return made, secret


def add(env: WorkerEnv, way: Way, wish: Wish, *, owner: Any) -> NotificationSubscription:
    """Let the account ``owner`` be told of what ``wish`` says, and return the subscription.

    ``way`` is mail or the own feed. Raises ``SubscriptionRefused``.
    """
    return _add(env, way, wish, created_by=owner.get_username(), owner=owner)


def _add(
    env: WorkerEnv, way: Way, wish: Wish, *, created_by: str, owner: Any, **columns: str
) -> NotificationSubscription:
    kinds = checked_kinds(wish.kinds)
    scope, value, label = _scope_of(env, wish, owner)
    if subscriptions(env, owner).count() >= MOST_OF_ONE:
        raise SubscriptionRefused(f"There are {MOST_OF_ONE} subscriptions already. Remove one first.")
    if way is Way.WEBHOOK and owner is not None:
        webhooks = subscriptions(env, owner).filter(way=Way.WEBHOOK).count()
        if webhooks >= MOST_WEBHOOKS_OF_ACCOUNT:
            raise SubscriptionRefused(f"There are {MOST_WEBHOOKS_OF_ACCOUNT} webhooks already. Remove one first.")
    try:
        with transaction.atomic(using=env.database):
            return NotificationSubscription.objects.using(env.database).create(
                namespace=env.name,
                owner_id=owner.pk if owner is not None else None,
                owner=owner.get_username() if owner is not None else "",
                way=way,
                scope=scope,
                scope_value=value,
                label=label,
                kinds=kinds,
                created_by=visible(created_by, 150),
                **columns,
            )
    except IntegrityError:
        raise SubscriptionRefused("There is such a subscription already. Nothing was made.") from None


def checked_kinds(kinds: Collection[str]) -> str:
    """Return names of events as they are stored; raise ``SubscriptionRefused`` for none and for unknown ones."""
    if not kinds or set(kinds) - set(Kind):
        raise SubscriptionRefused(f"Choose among these events: {', '.join(Kind)}. Nothing was made.")
    return " ".join(one for one in Kind if one in kinds)


def checked_url(env: WorkerEnv, url: str, *, of_operators: bool) -> str:
    """Return an address that webhooks of the operators, or of an account, may go to; raise ``SubscriptionRefused``.

    Where its name leads to is checked at each delivery.
    """
    text = url.strip()
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    plain = text.isascii() and text.isprintable() and " " not in text and "@" not in parts.netloc
    named = normalise_host(f"[{host}]" if ":" in host else host) == host
    if not (plain and named and host and parts.scheme == "https" and len(text) <= _LONGEST_URL and not parts.fragment):
        raise SubscriptionRefused(
            f"A webhook goes to an https address of at most {_LONGEST_URL} characters, without a name or password in "
            "it. Nothing was made."
        )
    allowed = webhook_policy(env, of_operators=of_operators)
    if refuse_private_name(host) is not None and not allowed.allows_private(host, port):
        inside = (
            "List it under policy.webhook_private_hosts" if of_operators else "Ask an operator to add such a webhook"
        )
        raise SubscriptionRefused(f"{host} is not on the public internet. {inside}. Nothing was made.")
    return text


def _scope_of(env: WorkerEnv, wish: Wish, owner: Any) -> tuple[Scope, str, str]:
    if wish.scope not in set(Scope) or (wish.scope == Scope.OWN and owner is None):
        raise SubscriptionRefused("Choose what you want to hear of. Nothing was made.")
    scope = Scope(wish.scope)
    if scope is Scope.OWN:
        return scope, "", "what you submitted"
    if scope is Scope.EVERYTHING:
        return scope, "", "everything"
    wanted = visible(wish.of.strip().removeprefix("https://").strip("/"), 300)
    if scope is Scope.PUBLISHER:
        if "/" not in wanted:
            raise SubscriptionRefused("Name a publisher as host/owner, such as github.com/acme. Nothing was made.")
        return scope, wanted, wanted
    skill = find_skill_sync(env, wanted, every=owner is None) if wanted else None
    if skill is None:
        raise SubscriptionRefused(f"There is no published skill {wanted!r}. Nothing was made.")
    return scope, skill.identity, skill.slug


def subscriptions(env: WorkerEnv, owner: Any = None) -> QuerySet[NotificationSubscription]:
    """Return the subscriptions of an account, or with ``None`` those of the operators, the newest first."""
    rows = NotificationSubscription.objects.using(env.database)
    rows = rows.filter(namespace=env.name, removed_at__isnull=True)
    return rows.filter(owner_id=owner.pk if owner is not None else None).order_by("-id")


def subscription(env: WorkerEnv, number: int) -> NotificationSubscription:
    """Return a subscription of anybody by its number; raise ``NoSuchSubscription``."""
    rows = NotificationSubscription.objects.using(env.database)
    found = rows.filter(namespace=env.name, removed_at__isnull=True, pk=number).first()
    if found is None:
        raise NoSuchSubscription(f"There is no subscription {number} in {env.name!r}. Nothing was changed.")
    return found


def remove(env: WorkerEnv, one: NotificationSubscription, *, actor: str) -> bool:
    """End a subscription and forget its secrets; return whether it was there until now. Its log is kept."""
    with transaction.atomic(using=env.database):
        rows = NotificationSubscription.objects.using(env.database).filter(pk=one.pk, removed_at__isnull=True)
        ended = rows.update(
            removed_at=Now(), secret="", tell_at=None, disabled_because=f"removed by {visible(actor, 100)}"
        )
        EarlierSecret.objects.using(env.database).filter(subscription_id=one.pk).delete()
        _give_up(env, one, "it was removed")
    return bool(ended)


def disable(env: WorkerEnv, one: NotificationSubscription, because: str) -> None:
    """Send nothing more to a subscription until somebody enables it; what was on its way is given up.

    The account that a webhook is of is told by mail, by the next run of ``deliver``.
    """
    told: dict[str, Any] = {}
    if one.way == Way.WEBHOOK and one.owner_id is not None:
        # Not the function of the database: who sends the mail compares it, and SQLite compares its text.
        told = {"tell_at": database_now(env.database), "tell_tries": 0}
    with transaction.atomic(using=env.database):
        rows = NotificationSubscription.objects.using(env.database).filter(pk=one.pk, disabled_at__isnull=True)
        if rows.update(disabled_at=Now(), disabled_because=because, **told):
            logger.warning("webhook %d of %s is disabled: %s", one.pk, env.name, because)
        _give_up(env, one, f"it was disabled: {because}")


def enable(env: WorkerEnv, one: NotificationSubscription) -> None:
    """Send to a subscription again from now on; what it missed is sent again by hand."""
    rows = NotificationSubscription.objects.using(env.database).filter(pk=one.pk)
    rows.update(disabled_at=None, disabled_because="", failing_since=None, rest_until=None, tell_at=None)


def _give_up(env: WorkerEnv, one: NotificationSubscription, said: str) -> None:
    pending = NotificationDelivery.objects.using(env.database).filter(
        namespace=env.name, subscription_id=one.pk, state=NotificationDelivery.PENDING
    )
    pending.update(state=NotificationDelivery.FAILED, said=said, finished_at=Now(), lease_token="", leased_until=None)
