"""Lead from an address with a slash too many to the page that was meant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase, HttpResponsePermanentRedirect
from django.urls import is_valid_path
from django.utils.decorators import sync_and_async_middleware
from django.utils.encoding import escape_uri_path
from django.utils.http import escape_leading_slashes

# The admin's addresses end in a slash, and programs are told of a wrong address rather than led on.
LEFT_ALONE: Final = ("/admin/", "/api/")


@sync_and_async_middleware
def redirect_without_slash(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Answer a GET for ``/skills/`` with a redirect to ``/skills``, where nothing but the last has a page."""
    if iscoroutinefunction(get_response):

        async def answer_later(request: HttpRequest) -> HttpResponseBase:
            return _redirected(request, await cast(Awaitable[HttpResponseBase], get_response(request)))

        return answer_later

    def answer(request: HttpRequest) -> HttpResponseBase:
        return _redirected(request, get_response(request))

    return answer


def _redirected(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code != 404 or request.method not in ("GET", "HEAD"):
        return response
    if not request.path_info.endswith("/") or request.path_info.startswith(LEFT_ALONE):
        return response
    bare = request.path_info.rstrip("/") or "/"
    if not is_valid_path(bare):
        return response
    address = escape_leading_slashes(escape_uri_path(f"{request.path.removesuffix(request.path_info)}{bare}"))
    query = request.META.get("QUERY_STRING", "")
    return HttpResponsePermanentRedirect(f"{address}?{query}" if query else address)
