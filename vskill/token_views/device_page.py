"""The page on which a signed-in person lets a program in that shows a code."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from vskill.access_tokens.device_logins import decide, waiting
from vskill.access_tokens.scopes import MEANINGS, Scope
from vskill.access_tokens.tokens import DEFAULT_DAYS
from vskill.accounts.access import asks_for
from vskill.accounts.roles import Action
from vskill.rate_limits.kinds import Kind, rated
from vskill.token_views.pages import private_page, signed_in_person
from vskill.worker_context import require_worker_env

_LONGEST_CODE: Final = 40


@rated(Kind.LOGINS)
@asks_for(Action.READ)
@require_http_methods(["GET", "HEAD", "POST"])
def device(request: HttpRequest) -> HttpResponse:
    """Ask for the code, show what waits under it, and let that in or refuse it."""
    user = signed_in_person(request)
    if user is None:
        sign_in = f"{reverse('sign-in')}?next={reverse('device')}"
        return _page(request, {"sign_in": sign_in}, 403 if request.method == "POST" else 200)
    if request.method != "POST":
        return _page(request, {"user": user})
    env, code = require_worker_env(), request.POST.get("code", "")[:_LONGEST_CODE]
    found = waiting(env, code)
    decision = request.POST.get("decision", "")
    if found is None:
        return _page(request, {"user": user, "unknown": True}, 400)
    if decision not in ("approve", "refuse"):
        scopes = [MEANINGS[Scope(one)] for one in found.scopes.split()]
        return _page(request, {"user": user, "found": found, "scopes": scopes, "days": DEFAULT_DAYS})
    if not decide(env, code, user, approve=decision == "approve"):
        return _page(request, {"user": user, "unknown": True}, 400)
    return _page(request, {"user": user, "decided": decision})


def _page(request: HttpRequest, context: dict[str, Any], status: int = 200) -> HttpResponse:
    return private_page(request, "device.html", context, status)
