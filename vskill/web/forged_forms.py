"""The page for a form that is refused as forged, with the cause and what the operator can do about it."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import REASON_BAD_ORIGIN
from django.template.loader import render_to_string

from vskill.hidden_characters import visible

_ABOUT_THE_ORIGIN: Final = REASON_BAD_ORIGIN.partition("%")[0]


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer 403: either the form had expired, or it came from an origin that is not this server's."""
    context: dict[str, Any] = {}
    if reason.startswith(_ABOUT_THE_ORIGIN):
        origin = request.META.get("HTTP_ORIGIN", "")
        context = {
            "origin": visible(origin, 200),
            # Browsers send this for a page that may not say where it is.
            "unknown": origin == "null",
            "own_origin": f"{request.scheme}://{request.get_host()}",
        }
    return HttpResponse(render_to_string("403_csrf.html", context, request), status=403)
