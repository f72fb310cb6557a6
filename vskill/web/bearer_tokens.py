"""Middleware that knows whose token a request bears, and refuses one that opens nothing: nobody becomes a stranger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.needed_scopes import scopes_of_view
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import TokenRefused, valid_token
from vskill.accounts.visitor import TOKEN_OWNER
from vskill.rate_limits.kinds import Form, Kind, rating_of
from vskill.visitors.errors import VisitorRefused
from vskill.visitors.reads import page_reads
from vskill.web.refusals import for_programs
from vskill.web.unserved import unserved
from vskill.worker_context import require_worker_env

_SCHEME: Final = "bearer"
_SAFE: Final = ("GET", "HEAD", "OPTIONS")


@sync_and_async_middleware
def know_bearers(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Find the token of each request that bears one; answer 401 in the form of its client where it opens nothing.

    It runs inside the environment of the request, and leaves the token in ``request.access_token`` and its owner where
    ``visitor_of`` looks. What submits is answered with 403 where the token was not made for that, or for a scope that
    its view ``needs``. A request without a token costs no query, and no other scheme of the header
    ``Authorization`` is looked at: a proxy may need it.
    """
    if iscoroutinefunction(get_response):

        async def answer_later(request: HttpRequest) -> HttpResponseBase:
            if (text := _borne(request)) is not None:
                try:
                    _keep(request, await page_reads.run(valid_token, require_worker_env(), text))
                except (TokenRefused, VisitorRefused) as error:
                    return _said(request, error)
                if (refusal := _out_of_scope(request)) is not None:
                    return refusal
            return await cast(Awaitable[HttpResponseBase], get_response(request))

        return answer_later

    def answer(request: HttpRequest) -> HttpResponseBase:
        if (text := _borne(request)) is not None:
            try:
                _keep(request, page_reads.run_sync(valid_token, require_worker_env(), text))
            except (TokenRefused, VisitorRefused) as error:
                return _said(request, error)
            if (refusal := _out_of_scope(request)) is not None:
                return refusal
        return cast(HttpResponseBase, get_response(request))

    return answer


def token_of(request: HttpRequest) -> AccessToken | None:
    """Return the valid token that a request bears, or ``None`` where it bears none."""
    found: AccessToken | None = getattr(request, "access_token", None)
    return found


def lacks(request: HttpRequest, *scopes: Scope) -> HttpResponse | None:
    """Return the 403 for a request whose token was made for none of ``scopes``; ``None`` for any other.

    A request without a token lacks none. What needs somebody to be known asks for that itself.
    """
    token = token_of(request)
    if token is None or any(token.allows(scope) for scope in scopes):
        return None
    made_for = token.scopes.replace(" ", ", ")
    message = f"This token was made for {made_for}, and this needs one for {' or '.join(scopes)}. Nothing was done."
    code = "insufficient_scope"
    return _challenged(for_programs(rating_of(request).form, 403, code, message), code)


def unauthorised(form: Form, message: str, code: str = "") -> HttpResponse:
    """Return a 401 that says ``message`` in the ``form`` that the clients of an address read; it costs no query.

    ``code`` is what is wrong with the token, and empty where none was sent.
    """
    return _challenged(for_programs(form, 401, code or "unauthorized", message), code)


def _said(request: HttpRequest, error: TokenRefused | VisitorRefused) -> HttpResponse:
    # The handler of errors answers 503 where the database is away; what was too slow or not begun never gets there.
    return unserved(request, error) or unauthorised(rating_of(request).form, str(error), TokenRefused.code)


def _out_of_scope(request: HttpRequest) -> HttpResponse | None:
    if request.method in _SAFE:
        return None
    needed = scopes_of_view(request)
    if not needed and rating_of(request).kind is Kind.SUBMISSIONS:
        needed = (Scope.SUBMIT,)
    return lacks(request, *needed) if needed else None


def _challenged(answer: HttpResponse, code: str) -> HttpResponse:
    answer["WWW-Authenticate"] = 'Bearer realm="vskill"' + (f', error="{code}"' if code else "")
    return answer


def _borne(request: HttpRequest) -> str | None:
    scheme, _blank, text = str(request.META.get("HTTP_AUTHORIZATION", "")).partition(" ")
    return text.strip() if scheme.lower() == _SCHEME else None


def _keep(request: HttpRequest, token: AccessToken) -> None:
    bearing: Any = request
    bearing.access_token = token
    setattr(bearing, TOKEN_OWNER, token.user)
