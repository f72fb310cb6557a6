"""Refusals in the form that the clients of an address read, among them 429 with the headers that say what is left."""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import Any, Final

from django.http import HttpResponse, HttpResponseBase
from django.template.loader import render_to_string

from vskill.rate_limits.kinds import Form, Kind
from vskill.rate_limits.limits_of_clients import Allowance
from vskill.web.error_forms import error_content

CODE: Final = "rate_limited"
_WHAT: Final = {
    Kind.SUBMISSIONS: ("submissions", "Nothing was submitted, and what had been accepted is kept."),
    Kind.READS: ("requests", "Nothing was changed."),
    Kind.DOWNLOADS: ("downloads", "Nothing was changed."),
    Kind.LOGINS: ("logins", "Nothing was checked."),
    Kind.UPLOADS: ("files", "Nothing was published."),
}
_SPANS: Final = {1: "a second", 60: "a minute", 3600: "an hour", 86400: "a day"}


def for_programs(form: Form, status: int, code: str, message: str, **more: Any) -> HttpResponse:
    """Return an error with its ``status``, ``code`` and ``message`` in a form of programs; see ``error_content``.

    It costs no query, no cache keeps it, and Django does not log it: a flood of refusals would fill the log.
    """
    content, media = error_content(form, status, code, message, **more)
    response = HttpResponse(content, status=status, content_type=media)
    response["Access-Control-Allow-Origin"] = "*"
    return _unlogged(response)


def _unlogged(response: HttpResponse) -> HttpResponse:
    response["Cache-Control"] = "no-store"
    response._has_been_logged = True  # type: ignore[attr-defined]  # the mark of django.utils.log
    return response


def seconds_in_words(seconds: int) -> str:
    """Return a time to wait as a sentence has it: ``1 second``, ``45 seconds``, ``5 minutes``."""
    number, unit = (seconds, "second") if seconds < 120 else (ceil(seconds / 60), "minute")
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def over_limit(kind: Kind, form: Form, allowance: Allowance) -> HttpResponseBase:
    """Return the 429 for a request of ``kind`` that exceeds the limit of its client, with the headers of both kinds.

    ``form`` is the one that the clients of the address read.
    """
    what, kept = _WHAT[kind]
    span = _SPANS.get(allowance.window, f"{allowance.window} seconds")
    message = f"Too many {what} came from your address: this registry takes {allowance.limit} in {span}. {kept}"
    response = refusal(form, message, allowance.seconds)
    say_what_is_left(response, allowance)
    return response


def refusal(form: Form, message: str, seconds: int) -> HttpResponse:
    """Return a 429 that says ``message`` and when to come back; it costs no query, whatever its ``form``."""
    if form is Form.PAGE:
        response = _unlogged(HttpResponse(_page(message, seconds), status=429))
    else:
        text = f"{message} Try again in {seconds_in_words(seconds)}."
        response = for_programs(form, 429, CODE, text, retryAfter=seconds)
    response["Retry-After"] = str(seconds)
    response["Content-Length"] = str(len(response.content))
    return response


@lru_cache(maxsize=256)
def _page(message: str, seconds: int) -> str:
    # Without the request, whose context processors would query the database for the user.
    return render_to_string("429.html", {"message": message, "wait": seconds_in_words(seconds)})


def say_what_is_left(response: HttpResponseBase, allowance: Allowance) -> None:
    """Set the headers of both kinds: ``X-RateLimit-Reset`` is a moment, ``RateLimit-Reset`` the seconds until then."""
    for prefix, reset in (("X-RateLimit", ceil(allowance.resets_at)), ("RateLimit", allowance.seconds)):
        response[f"{prefix}-Limit"] = str(allowance.limit)
        response[f"{prefix}-Remaining"] = str(allowance.remaining)
        response[f"{prefix}-Reset"] = str(reset)
