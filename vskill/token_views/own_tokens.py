"""The page on which a signed-in person makes tokens, sees their last use and revokes them."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from vskill.access_tokens.scopes import MEANINGS, Scope, UnknownScope, scopes_of
from vskill.access_tokens.tokens import (
    DEFAULT_DAYS,
    LONGEST_NAME,
    MOST_DAYS,
    TokenNotMade,
    make_token,
    revoke,
    tokens_of,
)
from vskill.accounts.access import asks_for
from vskill.accounts.roles import Action
from vskill.rate_limits.kinds import Kind, rated
from vskill.token_views.pages import private_page, signed_in_person
from vskill.worker_context import require_worker_env

# Of those that are revoked or expired, how many are shown.
_MOST_SHOWN: Final = 100


@rated(Kind.LOGINS)
@asks_for(Action.READ)
@require_http_methods(["GET", "HEAD", "POST"])
def own_tokens(request: HttpRequest) -> HttpResponse:
    """Show the tokens of whoever is signed in; make or revoke one where that was sent."""
    user = signed_in_person(request)
    if user is None:
        return HttpResponseRedirect(f"{reverse('sign-in')}?next={reverse('own-tokens')}")
    if request.method != "POST":
        return _page(request, user)
    if "revoke" in request.POST:
        return _revoke(request, user)
    return _make(request, user)


def _revoke(request: HttpRequest, user: Any) -> HttpResponse:
    number = request.POST["revoke"]
    if number.isascii() and number.isdigit() and len(number) <= 18:
        row = tokens_of(require_worker_env()).filter(user=user, pk=int(number)).first()
        if row is not None:
            revoke(row, actor=user.get_username(), reason="by its owner")
            return redirect("own-tokens")
    return _page(request, user, {"error": "There is no such token of yours. Nothing was changed."}, 404)


@sensitive_variables("token")
def _make(request: HttpRequest, user: Any) -> HttpResponse:
    name, days = request.POST.get("name", ""), request.POST.get("days", "")
    try:
        if not (days.isascii() and days.isdigit() and len(days) <= 4):
            raise TokenNotMade(f"A token is valid for 1 to {MOST_DAYS} days. Nothing was made.")
        scopes = scopes_of(request.POST.getlist("scope"))
        row, token = make_token(require_worker_env(), user, name=name, scopes=scopes, days=int(days))
    except (TokenNotMade, UnknownScope) as error:
        return _page(request, user, {"error": str(error), "name": name[:LONGEST_NAME]}, 400)
    return _page(request, user, {"made": row, "token": token})


def _page(request: HttpRequest, user: Any, more: dict[str, Any] | None = None, status: int = 200) -> HttpResponse:
    offered = [(scope, meaning) for scope, meaning in MEANINGS.items() if scope is not Scope.READ]
    context = {
        "tokens": tokens_of(require_worker_env()).filter(user=user)[:_MOST_SHOWN],
        "offered": offered,
        "days": DEFAULT_DAYS,
        "most_days": MOST_DAYS,
        "longest": LONGEST_NAME,
        "here": reverse("own-tokens"),
        **(more or {}),
    }
    return private_page(request, "own_tokens.html", context, status)
