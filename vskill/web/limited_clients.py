"""Middleware that limits what one client may ask in a while, and tells each client what it has left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from vskill.rate_limits.clients import client_of
from vskill.rate_limits.kinds import rating_of
from vskill.rate_limits.limits_of_clients import Allowance, limit_of
from vskill.web.refusals import over_limit, say_what_is_left
from vskill.worker_context import require_worker_env


@sync_and_async_middleware
def limit_clients(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Answer 429 to a request that exceeds the limit of its client, before anything is read for it.

    It runs inside the environment of the request. It costs a look into memory and no query.
    """
    if iscoroutinefunction(get_response):

        async def answer_later(request: HttpRequest) -> HttpResponseBase:
            allowance, refusal = _counted(request)
            if refusal is not None:
                return refusal
            return _with_headers(await cast(Awaitable[HttpResponseBase], get_response(request)), allowance)

        return answer_later

    def answer(request: HttpRequest) -> HttpResponseBase:
        allowance, refusal = _counted(request)
        return _with_headers(get_response(request), allowance) if refusal is None else refusal

    return answer


def _counted(request: HttpRequest) -> tuple[Allowance | None, HttpResponseBase | None]:
    """Count a request; return what its client has left, and the answer where it is refused."""
    rating = rating_of(request)
    limit = limit_of(require_worker_env(), rating.kind) if rating.kind is not None else None
    if limit is None or rating.kind is None:
        return None, None
    allowance = limit.count(client_of(request))
    return allowance, over_limit(rating.kind, rating.form, allowance) if allowance.refused else None


def _with_headers(response: HttpResponseBase, allowance: Allowance | None) -> HttpResponseBase:
    if allowance is not None and "X-RateLimit-Limit" not in response:
        say_what_is_left(response, allowance)
    return response
