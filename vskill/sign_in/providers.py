"""The sign-in by a provider outside: where it begins, and where its answer arrives."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from allauth.socialaccount.providers.github import views as github
from allauth.socialaccount.providers.openid_connect import views as openid_connect
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import URLPattern, path
from django.views.decorators.http import require_http_methods
from requests import RequestException

from vskill.accounts.access import asks_for
from vskill.rate_limits.kinds import Kind, rated

logger = logging.getLogger(__name__)


def _step(provider: str, method: str, view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Return ``view`` of django-allauth, which is not there where ``provider`` is not configured."""

    @rated(Kind.LOGINS)
    @asks_for(None)
    @require_http_methods([method])
    def answer(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        if provider not in settings.SOCIALACCOUNT_PROVIDERS:
            raise Http404("This registry has no such sign-in.")
        try:
            response = view(request, **arguments)
        except RequestException as error:
            logger.warning("the sign-in by %s does not answer: %r", provider, error)
            return render(request, "socialaccount/authentication_error.html", {"away": True}, status=503)
        return _led_on(request, response) if method == "POST" else response

    return answer


def _led_on(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return a page that leads on: the content security policy lets no form end at another host."""
    if response.status_code != 302:
        return response
    page: HttpResponse = render(request, "accounts/continue.html", {"address": response.headers["Location"]})
    page["Cache-Control"] = "no-store"
    page["Referrer-Policy"] = "no-referrer"
    return page


urlpatterns: Final[list[URLPattern]] = [
    path("sign-in/github", _step("github", "POST", github.oauth2_login), name="github_login"),
    path("sign-in/github/callback", _step("github", "GET", github.oauth2_callback), name="github_callback"),
    path(
        "sign-in/oidc/<str:provider_id>",
        _step("openid_connect", "POST", openid_connect.login),
        name="openid_connect_login",
    ),
    path(
        "sign-in/oidc/<str:provider_id>/callback",
        _step("openid_connect", "GET", openid_connect.callback),
        name="openid_connect_callback",
    ),
]


def offered() -> list[tuple[str, str]]:
    """Return the name of each provider that is configured, and the address at which its sign-in begins."""
    from allauth.socialaccount.adapter import get_adapter  # noqa: PLC0415 - it reads settings when it is imported

    return [(one.name, one.get_login_url(None)) for one in get_adapter().list_providers(None)]
