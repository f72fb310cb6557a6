"""What every dialect needs: a view that runs on a database thread, answers, refusals and parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import quote_etag
from django.views.decorators.csrf import csrf_exempt

from marketplace.errors import InvalidListing, MarketplaceError
from vskill.environments import WorkerEnv
from vskill.kv.threads import readers
from vskill.worker_context import require_worker_env

SAFE: Final = ("GET", "HEAD")
_BODY_LIMIT: Final = 256 * 1024


class Refused(MarketplaceError):
    """A request that is answered with a text and a status; the clients print the text as it is."""

    code = "refused"

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Asked:
    """What a view is asked: the request, in which environment, and what its path says."""

    request: HttpRequest
    env: WorkerEnv
    arguments: Mapping[str, str]


DatabaseView = Callable[[Asked], HttpResponse]
"""A view's work: synchronous, on one database thread from beginning to end."""


def text(message: str, status: int = 200) -> HttpResponse:
    """Return a plain text, which is how clawhub wants its errors."""
    return open_to_all(HttpResponse(message, status=status, content_type="text/plain; charset=utf-8"))


def json_answer(body: Mapping[str, Any], status: int = 200, *, max_age: int | None = None) -> HttpResponse:
    """Return a JSON object; ``max_age`` lets it be cached for so many seconds."""
    content = json.dumps(body, separators=(",", ":"))
    answer = open_to_all(HttpResponse(content, status=status, content_type="application/json"))
    answer["Cache-Control"] = "no-cache" if max_age is None else f"public, max-age={max_age}"
    return answer


def open_to_all(answer: HttpResponse) -> HttpResponse:
    """Let pages of other origins read an answer: what is published here is public, and no cookie is asked for."""
    answer["Access-Control-Allow-Origin"] = "*"
    return answer


def tagged(asked: Asked, answer: HttpResponse, digest: str) -> HttpResponse:
    """Give an answer its digest as ETag, and leave out the body where the client has it already."""
    etag = quote_etag(digest)
    answer["ETag"] = etag
    known = [tag.strip().removeprefix("W/") for tag in asked.request.headers.get("If-None-Match", "").split(",")]
    if etag not in known and "*" not in known:
        return answer
    unchanged = HttpResponseNotModified()
    for name in ("ETag", "Cache-Control", "Access-Control-Allow-Origin"):
        if name in answer:
            unchanged[name] = answer[name]
    return unchanged


def api_view(*methods: str) -> Callable[[DatabaseView], Callable[..., Any]]:
    """Make an asynchronous view of a synchronous one, which runs on a database thread.

    Any other method is answered 405 in words, a ``Refused`` with its text, a list that does not exist with 400.
    Nothing is kept in a cookie, so that there is nothing for a foreign page to abuse and no token is asked for.
    """

    def decorate(view: DatabaseView) -> Callable[..., Any]:
        @csrf_exempt
        @wraps(view)
        async def answer(request: HttpRequest, **arguments: str) -> HttpResponse:
            if request.method not in methods:
                refusal = text(f"This registry does not offer {request.method} here.", 405)
                refusal["Allow"] = ", ".join(methods)
                return refusal
            return await readers.run(_guarded, view, Asked(request, require_worker_env(), arguments))

        return answer

    return decorate


def _guarded(view: DatabaseView, asked: Asked) -> HttpResponse:
    try:
        return view(asked)
    except Refused as refusal:
        return text(str(refusal), refusal.status)
    except InvalidListing as error:
        return text(str(error), 400)


def parameter(asked: Asked, name: str, *, longest: int = 512) -> str:
    """Return a parameter of the address, empty where it is not given; raise ``Refused`` for one that nobody means."""
    value = asked.request.GET.get(name, "")
    if len(value) > longest or "\0" in value:
        raise Refused(400, f"The parameter {name} is too long, or has characters that it cannot have.")
    return value


def limit_of(asked: Asked, default: int, highest: int) -> int:
    """Return how many items are asked for, at most ``highest``; raise ``Refused`` for what is no number."""
    given = asked.request.GET.get("limit", "")
    if not given:
        return default
    if not given.isascii() or not given.isdigit() or len(given) > 6:
        raise Refused(400, "The parameter limit is a number above 0.")
    return max(1, min(int(given), highest))


def json_body(asked: Asked) -> dict[str, Any]:
    """Return the JSON object that a request carries; raise ``Refused`` for anything else."""
    if int(asked.request.headers.get("Content-Length") or 0) > _BODY_LIMIT:
        raise Refused(413, "The body is too long.")
    try:
        body = json.loads(asked.request.body or b"{}")
    except (ValueError, RecursionError) as error:
        raise Refused(400, "The body is not JSON.") from error
    if not isinstance(body, dict):
        raise Refused(400, "The body is a JSON object.")
    return body
