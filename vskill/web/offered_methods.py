"""Middleware that answers OPTIONS wherever a view knows which methods it takes, and says in words what is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from vskill.rate_limits.kinds import rating_of
from vskill.web.error_forms import error_content


@sync_and_async_middleware
def say_what_is_offered(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Turn the 405 with which views of pages answer OPTIONS into the methods that there are, and any other into words.

    Views of the API answer both themselves, and are left alone: they also say what other origins may read.
    """
    if iscoroutinefunction(get_response):

        async def answer_later(request: HttpRequest) -> HttpResponseBase:
            return _said(request, await cast(Awaitable[HttpResponseBase], get_response(request)))

        return answer_later

    def answer(request: HttpRequest) -> HttpResponseBase:
        return _said(request, cast(HttpResponseBase, get_response(request)))

    return answer


def _said(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code != 405 or "Allow" not in response:
        return response
    if request.method == "OPTIONS":
        return HttpResponse(status=204, headers={"Allow": f"{response['Allow']}, OPTIONS"})
    if isinstance(response, HttpResponse) and not response.content:
        form, message = rating_of(request).form, f"This registry does not offer {request.method} here."
        response.content, response["Content-Type"] = error_content(form, 405, "method_not_allowed", message)
    return response
