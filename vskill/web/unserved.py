"""The answer to a visitor whose page or call was ended, or not begun, so that others are served."""

from __future__ import annotations

import logging

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from vskill.rate_limits.kinds import Form, rating_of
from vskill.visitors.errors import VisitorRefused
from vskill.web.refusals import for_programs

logger = logging.getLogger(__name__)


def unserved(request: HttpRequest, exception: BaseException) -> HttpResponse | None:
    """Return 503 with Retry-After for a ``VisitorRefused``, and ``None`` for any other exception.

    The answer has the form that the clients of its address read.
    """
    if not isinstance(exception, VisitorRefused):
        return None
    logger.warning("%s at %s", exception.code, request.path)
    form = rating_of(request).form
    if form is not Form.PAGE:
        answer = for_programs(form, 503, exception.code, str(exception))
    else:
        # Without the request, whose context processors would query the database for the user.
        answer = HttpResponse(render_to_string("503.html", {"message": str(exception)}), status=503)
    answer["Retry-After"] = str(exception.retry_after)
    return answer
