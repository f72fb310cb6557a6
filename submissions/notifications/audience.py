"""Who hears of an event: who wants to, and may see it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Q

from marketplace.models import SkillEntry, SkillVersion
from submissions.models import SUBMISSION_PREFIX, SubmissionEntry
from submissions.notification_models import NotificationEvent, NotificationSubscription
from submissions.notifications.subscriptions import Scope, Way
from submissions.outbox import Kind, account_number
from vskill.accounts.access import permitted
from vskill.accounts.audiences import PUBLIC, audiences_of
from vskill.accounts.limits import limit_of
from vskill.accounts.roles import Action, may
from vskill.environments import WorkerEnv
from vskill.kv.codec import decode

# What readers of the registry are shown; the others are for who submitted it, and for reviewers.
_SHOWN_TO_READERS: Final = frozenset({Kind.PUBLISHED, Kind.WITHDRAWN, Kind.VERDICT_CHANGED})


def may_hear(env: WorkerEnv, account: Any, event: NotificationEvent) -> bool:
    """Return whether an account may be told of an event: it may read here, and what was held or refused is its own.

    Reviewers hear of what was held or refused as well. Of a private skill nobody hears who may not see it now.
    """
    return bool(heard(env, account, [event]))


def heard(env: WorkerEnv, account: Any, events: Sequence[NotificationEvent]) -> list[NotificationEvent]:
    """Return those of some events that an account may be told of, by the rule of ``may_hear``, with few queries."""
    if account is None or not account.is_active or not permitted(account, env, Action.READ):
        return []
    limit = limit_of(account)
    if limit is not None and env.name not in limit:
        return []
    reviews = may(account, env, Action.REVIEW)
    mine = [one for one in events if one.kind in _SHOWN_TO_READERS or reviews or one.submitter_id == account.pk]
    return _shown_to(env, account, mine)


def _shown_to(env: WorkerEnv, account: Any, events: Sequence[NotificationEvent]) -> list[NotificationEvent]:
    """Return the events whose skill, if there is one, is shown to an account, and which were submitted for it."""
    identities = {one.identity for one in events} - {""}
    slugs = {one.data.get("slug") for one in events} - {None, ""}
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name).exclude(slug="")
    hidden: set[str] = set()
    seen: frozenset[str] | None = None
    for row in rows.filter(Q(identity__in=identities) | Q(slug__in=slugs)):
        if row.audience == PUBLIC:
            continue
        seen = frozenset(audiences_of(account, env)) if seen is None else seen
        if row.audience not in seen:
            hidden |= {row.identity, row.slug}
    shown = [one for one in events if not hidden or hidden.isdisjoint({one.identity or None, one.data.get("slug")})]
    # What is published is for whom the skill is.
    ended = [one.submission_id for one in shown if one.kind not in _SHOWN_TO_READERS]
    if not (chosen := _chosen_for(env, ended)):
        return shown
    seen = frozenset(audiences_of(account, env)) if seen is None else seen
    return [one for one in shown if chosen.get(one.submission_id, PUBLIC) in (PUBLIC, *seen)]


def _chosen_for(env: WorkerEnv, submissions: Iterable[str]) -> dict[str, str]:
    """Return the audiences that were chosen for some submissions, by their ids; one without a choice is left out."""
    rows = SubmissionEntry.objects.using(env.database).filter(namespace=env.name, audience__isnull=False)
    found = rows.filter(key__in=[f"{SUBMISSION_PREFIX}{one}" for one in submissions]).values_list("key", "audience")
    return {key.removeprefix(SUBMISSION_PREFIX): str(audience) for key, audience in found}


def accounts_of(owners: Iterable[int | None]) -> dict[int, Any]:
    """Return the accounts with these numbers, with what roles and limits ask of them."""
    numbers = {one for one in owners if one is not None}
    return get_user_model()._default_manager.select_related("environment_limit").in_bulk(numbers) if numbers else {}


def listeners(env: WorkerEnv, event: NotificationEvent) -> list[NotificationSubscription]:
    """Return the subscriptions that an event is sent to; feeds are read, and mails need a server."""
    ways = [Way.WEBHOOK, Way.MAIL] if settings.MAIL_SERVER else [Way.WEBHOOK]
    rows = NotificationSubscription.objects.using(env.database)
    rows = rows.filter(namespace=env.name, way__in=ways, removed_at__isnull=True, disabled_at__isnull=True)
    wanted = Q(scope=Scope.EVERYTHING)
    if event.publisher:
        wanted |= Q(scope=Scope.PUBLISHER, scope_value=event.publisher)
    if event.identity:
        wanted |= Q(scope=Scope.SKILL, scope_value=event.identity)
    if event.submitter_id is not None:
        wanted |= Q(scope=Scope.OWN, owner_id=event.submitter_id)
    found = [one for one in rows.filter(wanted) if event.kind in one.kinds.split()]
    accounts = accounts_of(one.owner_id for one in found)
    # A webhook of the operators has no owner, and hears everything.
    return [one for one in found if one.owner_id is None or may_hear(env, accounts.get(one.owner_id), event)]


def submitter_of_skill(env: WorkerEnv, event: NotificationEvent) -> tuple[str, int | None]:
    """Return who submitted the version which an event is about, or the newest one: name and number of the account.

    The name is empty and the number ``None`` where that is not known.
    """
    versions = SkillVersion.objects.using(env.database).filter(
        namespace=env.name, skill__slug=event.data.get("slug", "")
    )
    wanted = versions.filter(version=event.data["version"]) if event.data.get("version") else versions
    submission = wanted.order_by("-ordinal").values_list("submission_id", flat=True).first()
    rows = SubmissionEntry.objects.using(env.database).live().filter(namespace=env.name)
    stored = rows.filter(key=f"{SUBMISSION_PREFIX}{submission}").values_list("value", flat=True).first()
    if stored is None:
        return "", None
    try:
        value = decode(stored)
    except (ValueError, RecursionError):
        return "", None
    if not isinstance(value, dict):
        return "", None
    account = value.get("submitterAccount")
    return account[:150] if isinstance(account, str) else "", account_number(value)
