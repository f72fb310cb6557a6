"""The answer to a visitor whose page or call was ended, or not begun, so that others are served."""

from __future__ import annotations

import logging

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from vskill.visitors.errors import VisitorRefused
from vskill.web.request_limits import JSON_API

logger = logging.getLogger(__name__)


def unserved(request: HttpRequest, exception: BaseException) -> HttpResponse | None:
    """Return 503 with Retry-After for a ``VisitorRefused``, and ``None`` for any other exception.

    The answer is a page, JSON below the API of submissions, and plain text below the rest of ``/api/``, whose clients
    print it as it is.
    """
    if not isinstance(exception, VisitorRefused):
        return None
    logger.warning("%s at %s", exception.code, request.path)
    answer: HttpResponse
    if request.path.startswith(JSON_API):
        answer = JsonResponse({"error": exception.code, "message": str(exception)}, status=503)
    elif request.path.startswith("/api/"):
        answer = HttpResponse(str(exception), status=503, content_type="text/plain; charset=utf-8")
    else:
        # Without the request, whose context processors would query the database for the user.
        answer = HttpResponse(render_to_string("503.html", {"message": str(exception)}), status=503)
    answer["Retry-After"] = str(exception.retry_after)
    return answer
