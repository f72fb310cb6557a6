"""Logins, slowed down after failures: that of the admin, and the sign-in."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Any, Final

from django.conf import settings
from django.contrib import admin
from django.core import signing
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.debug import sensitive_post_parameters

from vskill.accounts.access import asks_for
from vskill.hidden_characters import visible
from vskill.rate_limits.clients import client_of
from vskill.rate_limits.failed_logins import Attempt, begin, succeeded
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.web.refusals import refusal

logger = logging.getLogger(__name__)

# A signed account name, in a browser in which that account has logged in before.
COOKIE: Final = "vskill_known"
_SALT: Final = "vskill.web.logins"
_YEAR: Final = 365 * 24 * 3600


@sensitive_post_parameters()
@rated(Kind.LOGINS)
@asks_for(None)
def login(request: HttpRequest) -> HttpResponseBase:
    """Show the login of the admin and check passwords; see ``slowed_down``."""
    return slowed_down(request, admin.site.login) if request.method == "POST" else admin.site.login(request)


def slowed_down(request: HttpRequest, form: Callable[[HttpRequest], HttpResponseBase]) -> HttpResponseBase:
    """Return the answer of ``form``, a view that checks the password of a request.

    An attempt that has to wait is answered with 429, unchecked.
    """
    account = request.POST.get("username", "")
    known = _known(request, account)
    attempt = Attempt(account, client_of(request), known)
    if seconds := begin(attempt):
        logger.warning("a login as %s from %s has to wait %d s", visible(account, 60), attempt.client, seconds)
        message = "Too many logins failed. This one was not checked."
        return refusal(Form.PAGE, message, seconds)
    response = form(request)
    # The form is shown again where the account or the password was wrong.
    if response.status_code != 302:
        logger.warning("a login as %s from %s failed", visible(account, 60), attempt.client)
        return response
    succeeded(attempt)
    if not known:
        _remember(response, account, request.path)
    return response


def _known(request: HttpRequest, account: str) -> str:
    """Return the random part of the cookie where it was given to this account, else an empty text."""
    try:
        owner, mark = signing.loads(request.COOKIES.get(COOKIE, ""), salt=_SALT, max_age=_YEAR)
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    return str(mark) if owner == account else ""


def _remember(response: HttpResponseBase, account: str, path: str) -> None:
    value: Any = [account, secrets.token_hex(16)]
    response.set_cookie(
        COOKIE,
        signing.dumps(value, salt=_SALT),
        max_age=_YEAR,
        path=path,
        secure=bool(settings.SESSION_COOKIE_SECURE),
        httponly=True,
        samesite="Strict",
    )
