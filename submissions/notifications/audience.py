"""Who hears of an event: who wants to, and may see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db.models import Q

from marketplace.models import SkillEntry, SkillVersion
from submissions.models import SUBMISSION_PREFIX, SubmissionEntry
from submissions.notification_models import NotificationEvent, NotificationSubscription
from submissions.notifications.subscriptions import Scope
from submissions.outbox import Kind
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
    if account is None or not account.is_active or not permitted(account, env, Action.READ):
        return False
    limit = limit_of(account)
    if limit is not None and env.name not in limit:
        return False
    if not may_see(env, account, event):
        return False
    own = bool(event.submitter) and event.submitter == account.get_username()
    return event.kind in _SHOWN_TO_READERS or own or may(account, env, Action.REVIEW)


def may_see(env: WorkerEnv, account: Any, event: NotificationEvent) -> bool:
    """Return whether the skill of an event, if there is one, is shown to an account."""
    slug = event.data.get("slug") or ""
    about = (Q(identity=event.identity) if event.identity else Q(pk__in=())) | (Q(slug=slug) if slug else Q(pk__in=()))
    rows = SkillEntry.objects.using(env.database).filter(about, namespace=env.name).exclude(slug="")
    private = {row.audience for row in rows} - {PUBLIC}
    return not private or private <= set(audiences_of(account, env))


def accounts_of(owners: Iterable[int | None]) -> dict[int, Any]:
    """Return the accounts with these numbers, with what roles and limits ask of them."""
    numbers = {one for one in owners if one is not None}
    return get_user_model()._default_manager.select_related("environment_limit").in_bulk(numbers) if numbers else {}


def listeners(env: WorkerEnv, event: NotificationEvent) -> list[NotificationSubscription]:
    """Return the subscriptions that an event is for."""
    rows = NotificationSubscription.objects.using(env.database)
    rows = rows.filter(namespace=env.name, removed_at__isnull=True, disabled_at__isnull=True)
    wanted = Q(scope=Scope.EVERYTHING)
    if event.publisher:
        wanted |= Q(scope=Scope.PUBLISHER, scope_value=event.publisher)
    if event.identity:
        wanted |= Q(scope=Scope.SKILL, scope_value=event.identity)
    if event.submitter:
        wanted |= Q(scope=Scope.OWN, owner=event.submitter)
    found = [one for one in rows.filter(wanted) if event.kind in one.kinds.split()]
    accounts = accounts_of(one.owner_id for one in found)
    # A webhook of the operators has no owner, and hears everything.
    return [one for one in found if one.owner_id is None or may_hear(env, accounts.get(one.owner_id), event)]


def submitter_of_skill(env: WorkerEnv, event: NotificationEvent) -> str:
    """Return the account that submitted the version which an event is about, or the newest one; empty: unknown."""
    versions = SkillVersion.objects.using(env.database).filter(
        namespace=env.name, skill__slug=event.data.get("slug", "")
    )
    wanted = versions.filter(version=event.data["version"]) if event.data.get("version") else versions
    submission = wanted.order_by("-ordinal").values_list("submission_id", flat=True).first()
    rows = SubmissionEntry.objects.using(env.database).live().filter(namespace=env.name)
    stored = rows.filter(key=f"{SUBMISSION_PREFIX}{submission}").values_list("value", flat=True).first()
    if stored is None:
        return ""
    try:
        value = decode(stored)
    except (ValueError, RecursionError):
        return ""
    account = value.get("submitterAccount") if isinstance(value, dict) else None
    return account[:150] if isinstance(account, str) else ""
