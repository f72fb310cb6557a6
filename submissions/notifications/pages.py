"""The pages on which a person chooses what to hear of, confirms an address, and ends all mails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from submissions.notification_models import NotificationSubscription
from submissions.notifications.errors import NoSuchSubscription, SubscriptionRefused
from submissions.notifications.listing import log_of, state_of
from submissions.notifications.preferences import (
    add_mail,
    ask_to_confirm,
    confirm,
    end_feed,
    new_feed,
    preference,
    set_rhythm,
    unsubscribe,
)
from submissions.notifications.rotation import HOURS, earlier_signs_until, end_earlier, rotate
from submissions.notifications.subscriptions import Scope, Way, Wish, add, add_webhook, enable, remove, subscriptions
from submissions.outbox import Kind
from vskill.accounts.access import asks_for
from vskill.accounts.roles import Action
from vskill.kv.clock import database_now
from vskill.rate_limits.kinds import Kind as Rate
from vskill.rate_limits.kinds import rated
from vskill.token_views.pages import private_page, signed_in_person
from vskill.worker_context import require_worker_env

KINDS: Final = {
    Kind.PUBLISHED: "published",
    Kind.HELD: "held for review",
    Kind.REFUSED: "refused",
    Kind.WITHDRAWN: "withdrawn",
    Kind.VERDICT_CHANGED: "its verdict changed",
}
_SCOPES: Final = {
    Scope.OWN: "what I submitted",
    Scope.PUBLISHER: "everything of a publisher",
    Scope.SKILL: "one skill",
    Scope.EVERYTHING: "everything that I may see",
}
_MOST_SENT: Final = 10
_Shown = dict[str, Any]


@rated(Rate.LOGINS)
@asks_for(Action.READ)
@require_http_methods(["GET", "HEAD", "POST"])
def notifications(request: HttpRequest) -> HttpResponse:
    """Show what whoever is signed in hears of, and in which way; change that where it was sent."""
    user = signed_in_person(request)
    here = reverse("submissions:notifications")
    if user is None:
        return HttpResponseRedirect(f"{reverse('sign-in')}?next={here}")
    if request.method != "POST":
        return _page(request, user)
    change = _CHANGES.get(request.POST.get("do", ""))
    try:
        if change is None:
            raise SubscriptionRefused("That cannot be done here. Nothing was changed.")
        shown = change(request, user)
    except (SubscriptionRefused, NoSuchSubscription) as error:
        return _page(request, user, {"error": str(error), "given": request.POST}, 400)
    return redirect(here) if shown is None else _page(request, user, shown)


def _address(request: HttpRequest, user: Any) -> _Shown | None:
    ask_to_confirm(require_worker_env(), user, request.POST.get("address", ""))
    return None


def _rhythm(request: HttpRequest, user: Any) -> _Shown | None:
    set_rhythm(require_worker_env(), user, request.POST.get("rhythm", ""))
    return None


@sensitive_variables("secret")
def _add(request: HttpRequest, user: Any) -> _Shown | None:
    env = require_worker_env()
    given = request.POST
    wish = Wish(given.getlist("kind"), given.get("scope", ""), given.get("of", "")[:300])
    way = given.get("way", "")
    if way == Way.WEBHOOK:
        made, secret = add_webhook(env, given.get("url", "")[:1001], wish, created_by=user.get_username(), owner=user)
        return {"made": made, "secret": secret}
    if way == Way.MAIL:
        add_mail(env, user, wish)
    elif way == Way.FEED:
        add(env, Way.FEED, wish, owner=user)
    else:
        raise SubscriptionRefused("Choose how you want to hear of it. Nothing was made.")
    return None


def _own(request: HttpRequest, user: Any) -> NotificationSubscription:
    number = request.POST.get("id", "")
    if number.isascii() and number.isdigit() and len(number) <= 18:
        found = subscriptions(require_worker_env(), user).filter(pk=int(number)).first()
        if found is not None:
            return found
    raise NoSuchSubscription("There is no such subscription of yours. Nothing was changed.")


def _remove(request: HttpRequest, user: Any) -> _Shown | None:
    remove(require_worker_env(), _own(request, user), actor=user.get_username())
    return None


def _enable(request: HttpRequest, user: Any) -> _Shown | None:
    enable(require_worker_env(), _own(request, user))
    return None


@sensitive_variables("secret")
def _rotate(request: HttpRequest, user: Any) -> _Shown | None:
    one = _own(request, user)
    secret = rotate(require_worker_env(), one, actor=user.get_username())
    return {"made": one, "secret": secret, "hours": HOURS}


def _end_earlier(request: HttpRequest, user: Any) -> _Shown | None:
    end_earlier(require_worker_env(), _own(request, user), actor=user.get_username())
    return None


@sensitive_variables("secret", "address")
def _feed(_request: HttpRequest, user: Any) -> _Shown | None:
    env = require_worker_env()
    secret = new_feed(env, user)
    return {"feed_address": f"{env.public_url}{reverse('submissions:secret-feed', args=[secret])}"}


def _end_feed(_request: HttpRequest, user: Any) -> _Shown | None:
    end_feed(require_worker_env(), user)
    return None


_CHANGES: Final[dict[str, Callable[[HttpRequest, Any], _Shown | None]]] = {
    "address": _address,
    "rhythm": _rhythm,
    "add": _add,
    "remove": _remove,
    "enable": _enable,
    "rotate": _rotate,
    "end-earlier": _end_earlier,
    "feed": _feed,
    "end-feed": _end_feed,
}


def _page(request: HttpRequest, user: Any, more: _Shown | None = None, status: int = 200) -> HttpResponse:
    env = require_worker_env()
    rows = list(subscriptions(env, user).prefetch_related("earlier_secrets"))
    now = database_now(env.database)
    webhooks = [one.pk for one in rows if one.way == Way.WEBHOOK]
    context = {
        "preference": preference(env, user),
        "mails": bool(settings.MAIL_SERVER),
        "subscriptions": [
            {"row": one, "state": state_of(one, now), "earlier_until": earlier_signs_until(one, now)} for one in rows
        ],
        "sent": log_of(env).filter(subscription_id__in=webhooks)[:_MOST_SENT] if webhooks else [],
        "kinds": KINDS.items(),
        "scopes": _SCOPES.items(),
        "ways": [way for way in Way if way is not Way.MAIL or settings.MAIL_SERVER],
        "here": reverse("submissions:notifications"),
        **(more or {}),
    }
    return private_page(request, "submissions/notifications.html", context, status)


@rated(Rate.LOGINS)
@asks_for(None)
@require_http_methods(["GET", "HEAD", "POST"])
def confirm_address(request: HttpRequest, token: str) -> HttpResponse:
    """Let the address of a mail count whose link leads here; a click alone, which scanners of mail do too, does not."""
    if request.method != "POST":
        return _plain(request, "Confirm your address", button="Send notifications to my address")
    try:
        one = confirm(require_worker_env(), token)
    except NoSuchSubscription as error:
        return _plain(request, "Nothing was changed", said=str(error), status=404)
    return _plain(request, "Confirmed", said=f"Notifications for {one.owner} go to {one.address}.")


@csrf_exempt
@rated(Rate.LOGINS)
@asks_for(None)
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe_from_mails(request: HttpRequest, token: str) -> HttpResponse:
    """End all mails to the account whose mail has this link; RFC 8058 posts here without a session."""
    try:
        owner = unsubscribe(require_worker_env(), token, dry_run=request.method != "POST")
    except NoSuchSubscription as error:
        return _plain(request, "Nothing was changed", said=str(error), status=404)
    if request.method != "POST":
        return _plain(request, "No more mails", said=f"End all notifications to {owner} by mail?", button="End them")
    return _plain(request, "No more mails", said="You get no more mails. You can choose anew at your account.")


def _plain(request: HttpRequest, title: str, *, said: str = "", button: str = "", status: int = 200) -> HttpResponse:
    context = {"title": title, "said": said, "button": button}
    return private_page(request, "submissions/notifications_link.html", context, status)
