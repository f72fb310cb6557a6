"""The feed of one account: what it chose to read there, for its token or its session, or at a secret address."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.http import HttpResponse, HttpResponseBase
from django.urls import reverse

from marketplace.addresses import public_base
from marketplace.api.http import SAFE, ApiCall, ApiError, api_view, takes_only, with_etag
from marketplace.feeds.atom import About, Entry, feed_of_entries
from marketplace.feeds.views import CONTENT_TYPE
from submissions.notification_models import NotificationEvent, NotificationPreference
from submissions.notifications.audience import accounts_of, heard
from submissions.notifications.preferences import digest_of
from submissions.notifications.subscriptions import Scope as Of
from submissions.notifications.subscriptions import Way, subscriptions
from submissions.notifications.texts import page_of, reason_of, title_of
from submissions.outbox import Kind
from vskill.access_tokens.scopes import Scope
from vskill.accounts.access import asks_for
from vskill.accounts.roles import Action, may
from vskill.accounts.visitor import visitor_of
from vskill.environments import WorkerEnv
from vskill.visitors.reads import list_reads
from vskill.web.bearer_tokens import lacks

_MOST_ENTRIES: Final = 50
# Of the installation's newest events; what is older has left every feed.
_LOOKED_AT: Final = 20_000
_READ: Final = 200


@api_view(*SAFE, reads=list_reads)
def own_feed(call: ApiCall) -> HttpResponseBase:
    """Return the feed of whoever is signed in or sends a token that was made for reading."""
    takes_only(call)
    # Also where strangers read: the feed tells of private skills, and of what was held.
    if (refusal := lacks(call.request, Scope.READ)) is not None:
        return refusal
    account = visitor_of(call.request)
    if account is None:
        raise ApiError(401, "This feed is of an account: send one of its tokens, or use the secret address of a feed.")
    return _feed(call, account.pk, reverse("submissions:own-feed"))


@asks_for(None)
@api_view(*SAFE, reads=list_reads)
def secret_feed(call: ApiCall) -> HttpResponseBase:
    """Return the feed of whoever has its secret address; a reader of feeds can send no token."""
    takes_only(call)
    rows = NotificationPreference.objects.using(call.env.database).filter(namespace=call.env.name)
    found = rows.filter(feed_digest=digest_of(call.path_parameters["secret"])).first()
    if found is None:
        raise ApiError(404, "There is no such feed. Its address may have been ended or replaced.")
    # The feed does not repeat its secret.
    return _feed(call, found.owner_id, reverse("submissions:own-feed"))


def _feed(call: ApiCall, owner_id: int, own: str) -> HttpResponseBase:
    env = call.env
    account = accounts_of([owner_id]).get(owner_id)
    if account is None or not account.is_active:
        raise ApiError(404, "There is no such feed. Its account is closed.")
    shown = heard(env, account, list(_chosen(env, account)[:_READ]))[:_MOST_ENTRIES]
    base = public_base(call.request, env)
    about = About(
        f"Notifications for {account.get_username()}",
        "What this account chose to hear of.",
        base,
        own,
        reverse("submissions:notifications"),
    )
    entries = [
        Entry(title_of(one), page_of(env, one) or base, reason_of(one), one.created_at, f"event/{one.source}")
        for one in shown
    ]
    content = feed_of_entries(about, entries).encode()
    answer = HttpResponse(content, content_type=CONTENT_TYPE)
    # For its reader alone, and for no page of another origin.
    answer["Cache-Control"] = "private, no-cache"
    answer["X-Robots-Tag"] = "noindex"
    return with_etag(call.request, answer, hashlib.sha256(content).hexdigest())


def _chosen(env: WorkerEnv, account: Any) -> QuerySet[NotificationEvent]:
    """Return the events that an account chose for its feed, the newest first; who chose none has the own ones."""
    rows = NotificationEvent.objects.using(env.database).filter(namespace=env.name, kind__in=list(Kind))
    newest = rows.order_by("-id").values_list("id", flat=True).first() or 0
    rows = rows.filter(id__gt=newest - _LOOKED_AT).order_by("-id")
    chosen = list(subscriptions(env, account).filter(way=Way.FEED))
    if not chosen:
        return rows if may(account, env, Action.REVIEW) else rows.filter(submitter_id=account.pk)
    wanted = Q(pk__in=[])
    for one in chosen:
        of = {
            Of.EVERYTHING: Q(),
            Of.OWN: Q(submitter_id=account.pk),
            Of.PUBLISHER: Q(publisher=one.scope_value),
            Of.SKILL: Q(identity=one.scope_value),
        }[Of(one.scope)]
        wanted |= of & Q(kind__in=one.kinds.split())
    return rows.filter(wanted)
