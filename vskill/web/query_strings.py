"""Middleware that refuses what no page and no client can mean, in the form that its client reads.

That is a query string with what nothing here is called, a parameter that is given more than once where one value is
read, and a length of the body that is no number.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any, Final, TypeVar, cast

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve
from django.utils.decorators import sync_and_async_middleware

from vskill.hidden_characters import visible
from vskill.rate_limits.kinds import Form, rating_of
from vskill.web.refusals import for_programs

# Longer than any value that an address of this registry can have; the longest are cursors and addresses.
LONGEST_VALUE: Final = 2_048
_LONGEST_NAME: Final = 100
# Of a length of a body. Python reads no number of more than some thousand.
_MOST_DIGITS: Final = 18
# What a paste leaves in a value. Every other control character reads differently for a person than for a program.
_BLANKS: Final = "\t\n\r"
_SEVERAL: Final = "parameters_with_several_values"

View = TypeVar("View", bound=Callable[..., Any])


# What mail programs and other sites append to links that people share.
_APPENDED: Final = frozenset({"fbclid", "gclid", "mc_cid", "mc_eid", "ref"})


@sync_and_async_middleware
def refuse_strange_queries(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Answer 400 in words to a query string with a control character or a value that is longer than any.

    So it does for a parameter that is given more than once, unless the view ``takes_several``, and for a Content-Length
    that is no number, on which Django fails wherever a body is read. The admin's own pages read their query strings
    themselves.
    """
    if iscoroutinefunction(get_response):

        async def answer_later(request: HttpRequest) -> HttpResponseBase:
            refusal = _refusal(request)
            return refusal or await cast(Awaitable[HttpResponseBase], get_response(request))

        return answer_later

    def answer(request: HttpRequest) -> HttpResponseBase:
        return _refusal(request) or get_response(request)

    return answer


def takes_several(*names: str) -> Callable[[View], View]:
    """Return a decorator by which a view says that its parameters ``names`` may be given more than once."""

    def mark(view: View) -> View:
        setattr(view, _SEVERAL, names)
        return view

    return mark


def limit_in(given: str, default: int, highest: int) -> int:
    """Return how many are asked for, from 1 to ``highest``: ``given``, the text of a parameter, or ``default``.

    A higher number is taken as the highest, because clients ask for all that they can get. Raises ``ValueError``, with
    a sentence for whoever asks, where it is no number from 1 on.
    """
    if not given:
        return default
    if not (given.isascii() and given.isdigit() and given.strip("0")):
        shown = visible(given, 40)
        raise ValueError(
            f"The parameter limit is a whole number from 1, and not {shown!r}. At most {highest} are answered at once."
        )
    # Python reads no number of more than some thousand digits.
    return min(int(given.lstrip("0")[:_MOST_DIGITS]), highest)


def fault_of(name: str, value: str) -> str:
    """Return what is wrong with a parameter of a query string, as a sentence; empty where nothing is."""
    shown = visible(name, 40)
    if len(name) > _LONGEST_NAME or has_control(name):
        return f"The address has a parameter that nothing here is called: {shown}."
    if len(value) > LONGEST_VALUE:
        return f"The parameter {shown} has {len(value)} characters. No parameter here has more than {LONGEST_VALUE}."
    if has_control(value):
        return f"The parameter {shown} has a control character, which nothing here is named by: {visible(value, 60)}."
    return ""


def unknown_parameter(given: Iterable[str], names: Collection[str]) -> str:
    """Return a sentence about the first of the ``given`` names that is not among ``names``; empty where there is none.

    What others append to links, such as ``utm_source``, is left alone: it filters nothing.
    """
    for name in given:
        if name not in names and not _is_appended(name):
            known = f"It has: {', '.join(names)}." if names else "It has none."
            return f"This address has no parameter {visible(name, 40)!r}. {known} Nothing was read."
    return ""


def _is_appended(name: str) -> bool:
    return name in _APPENDED or name.startswith("utm_")


def has_control(text: str) -> bool:
    """Return whether ``text`` has a control character other than a tab or the end of a line."""
    if text.isascii() and text.isprintable():
        return False
    return any(unicodedata.category(one) == "Cc" and one not in _BLANKS for one in text)


def bad_query(form: Form, message: str) -> HttpResponse:
    """Return a 400 that says ``message`` in the ``form`` that the clients of an address read; it costs no query."""
    if form is Form.PAGE:
        # Without the request, whose context processors would query the database for the user.
        return HttpResponse(render_to_string("400.html", {"message": message}), status=400)
    return for_programs(form, 400, "bad_request", message)


def _refusal(request: HttpRequest) -> HttpResponse | None:
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not (length.isascii() and length.isdigit() and len(length) <= _MOST_DIGITS):
        return bad_query(rating_of(request).form, "The header Content-Length is not a number. Nothing was read.")
    # Most requests have no query string; to parse one costs more than to look.
    if not request.META.get("QUERY_STRING") or request.path_info.startswith("/admin/"):
        return None
    faults = (fault_of(name, value) for name, values in request.GET.lists() for value in values)
    fault = next((one for one in faults if one), "") or _repeated(request)
    return bad_query(rating_of(request).form, fault) if fault else None


def _repeated(request: HttpRequest) -> str:
    """Return a sentence about a parameter of which all values but one would be ignored; empty where there is none."""
    repeated = [
        (name, len(values)) for name, values in request.GET.lists() if len(values) > 1 and not _is_appended(name)
    ]
    if not repeated:
        return ""
    try:
        several = getattr(resolve(request.path_info).func, _SEVERAL, ())
    except Resolver404:
        # What is not there is said by the answer itself.
        return ""
    for name, number in repeated:
        if name not in several:
            return f"The parameter {visible(name, 40)} is given {number} times. It has one value: choose one of them."
    return ""
