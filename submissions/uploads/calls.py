"""What the calls about uploads share: whose token, whose limit, and refusals in the form that clawhub prints."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from marketplace.api.http import offered, text_response
from submissions.uploads.errors import UploadRefused
from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.needed_scopes import needs
from vskill.access_tokens.scopes import Scope
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.rate_limits.limits_of_clients import limit_of
from vskill.web.bearer_tokens import token_of, unauthorised
from vskill.web.refusals import over_limit
from vskill.worker_context import require_worker_env

logger = logging.getLogger(__name__)

_WITHOUT: Final = (
    "This is done for an account: make a token for publish under /account/tokens, and run clawhub login --token TOKEN. "
    "Nothing was changed."
)
TokenView = Callable[..., Awaitable[HttpResponseBase]]


def token_view(
    method: str, kind: Kind, *scopes: Scope
) -> Callable[[TokenView], Callable[..., Coroutine[Any, Any, HttpResponseBase]]]:
    """Return a decorator for a view that does something for the owner of a token for one of ``scopes``.

    The view takes the request, the token, and the parts of the path. Requests of ``kind`` are counted for the account
    too, wherever they come from. An ``UploadRefused`` is answered with its status and its text. Only a token counts
    and never a session, so that no page of another site can send anything.
    """

    def decorate(view: TokenView) -> Callable[..., Coroutine[Any, Any, HttpResponseBase]]:
        @rated(kind, Form.TEXT)
        @needs(*scopes)
        @csrf_exempt
        @wraps(view)
        async def answer(request: HttpRequest, **parts: str) -> HttpResponseBase:
            if request.method != method:
                return not_offered_here(request, method)
            return await for_account(request, kind, view, **parts)

        return answer

    return decorate


async def for_account(request: HttpRequest, kind: Kind, view: TokenView, **parts: str) -> HttpResponseBase:
    """Answer a request by ``view`` for the owner of its token, or refuse it; see ``token_view``."""
    token = token_of(request)
    if token is None:
        return unauthorised(Form.TEXT, _WITHOUT)
    if (refusal := _over_limit(token, kind)) is not None:
        return refusal
    try:
        return await view(request, token, **parts)
    except UploadRefused as refused:
        return refusal_answer(refused)


def not_offered_here(request: HttpRequest, *methods: str) -> HttpResponse:
    """Return the answer to a method that an address does not take, or to OPTIONS."""
    if request.method == "OPTIONS":
        return offered(*methods)
    answer = text_response(f"This registry does not offer {request.method} here.", 405)
    answer["Allow"] = ", ".join(methods)
    return answer


def refusal_answer(refused: UploadRefused) -> HttpResponse:
    """Return a refusal as the text that the client prints; 503 and 429 say when to come back."""
    answer = text_response(str(refused), refused.status)
    answer["Cache-Control"] = "no-store"
    if refused.status in (429, 503):
        answer["Retry-After"] = "10" if refused.status == 503 else "3600"
    return answer


def _over_limit(token: AccessToken, kind: Kind) -> HttpResponseBase | None:
    limit = limit_of(require_worker_env(), kind)
    allowance = limit.count(f"account {token.user_id}") if limit is not None else None
    return over_limit(kind, Form.TEXT, allowance) if allowance is not None and allowance.refused else None
