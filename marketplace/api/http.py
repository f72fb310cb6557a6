"""What every dialect needs: views that run on a database thread, responses, errors and request parameters."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, TypeVar

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotModified
from django.utils.http import quote_etag
from django.views.decorators.csrf import csrf_exempt

from marketplace.api.bounds import LONGEST
from marketplace.errors import InvalidListing, MarketplaceError
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.errors import InvalidCursor
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.visitors.errors import VisitorRefused
from vskill.visitors.reads import VisitorReads, page_reads
from vskill.web.error_forms import error_content
from vskill.web.query_strings import limit_in
from vskill.worker_context import require_worker_env

logger = logging.getLogger(__name__)

SAFE: Final = ("GET", "HEAD")
_CODES: Final = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 410: "withdrawn", 413: "too_large"}
_BODY_LIMIT: Final = 256 * 1024
# Of a length; a longer number is beyond any limit, and costs time to read.
_LENGTH_DIGITS: Final = 12


class ApiError(MarketplaceError):
    """A request that is answered with an HTTP error; ``text`` becomes the body, which clients print as it is."""

    code = "refused"

    def __init__(self, status: int, text: str) -> None:
        """Keep the HTTP status beside the text."""
        super().__init__(text)
        self.status = status


class NotJson(ApiError):
    """The body of a request is no JSON."""

    code = "not_json"


@dataclass(frozen=True)
class ApiCall:
    """One call of the API: the request, its environment, and the parameters in its path by name."""

    request: HttpRequest
    env: WorkerEnv
    path_parameters: Mapping[str, str]


DatabaseView = Callable[[ApiCall], HttpResponseBase]
"""A synchronous view, which runs on one database thread from beginning to end."""


def text_response(message: str, status: int = 200) -> HttpResponse:
    """Return a plain-text response, the form in which clawhub expects errors."""
    return allow_any_origin(HttpResponse(message, status=status, content_type="text/plain; charset=utf-8"))


def json_response(body: Mapping[str, Any], status: int = 200, *, max_age: int | None = None) -> HttpResponse:
    """Return a JSON response; ``max_age`` is how many seconds caches may use it, ``None`` makes them revalidate."""
    content = json.dumps(body, separators=(",", ":"))
    answer = allow_any_origin(HttpResponse(content, status=status, content_type="application/json"))
    answer["Cache-Control"] = "no-cache" if max_age is None else f"public, max-age={max_age}"
    return answer


_Response = TypeVar("_Response", bound=HttpResponseBase)


def allow_any_origin(answer: _Response) -> _Response:
    """Let pages of any origin read a response: everything published is public, and no cookie is involved."""
    answer["Access-Control-Allow-Origin"] = "*"
    return answer


def with_etag(request: HttpRequest, answer: HttpResponseBase, digest: str) -> HttpResponseBase:
    """Return ``answer`` with ``digest`` as its ETag, or a 304 where the client already has that content."""
    etag = quote_etag(digest)
    answer["ETag"] = etag
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("If-None-Match", "").split(",")]
    if etag not in known and "*" not in known:
        return answer
    unchanged = HttpResponseNotModified()
    for name in ("ETag", "Cache-Control", "Access-Control-Allow-Origin"):
        if name in answer:
            unchanged[name] = answer[name]
    return unchanged


def tagged_response(call: ApiCall, text: str, content_type: str) -> HttpResponseBase:
    """Return a text with an ETag, or a 304; caches ask each time, because what was withdrawn has left it."""
    content = text.encode()
    answer = allow_any_origin(HttpResponse(content, content_type=content_type))
    answer["Cache-Control"] = "no-cache"
    return with_etag(call.request, answer, hashlib.sha256(content).hexdigest())


def api_view(
    *methods: str, kind: Kind = Kind.READS, form: Form = Form.TEXT, reads: VisitorReads = page_reads
) -> Callable[[DatabaseView], Callable[..., Any]]:
    """Return a decorator that turns a ``DatabaseView`` into an asynchronous Django view for these HTTP methods.

    ``kind`` is which limit of a client its requests count against, ``form`` that of its errors, and ``reads`` where it
    runs: a view that reads many rows belongs to ``list_reads``.

    Other methods are answered with 405, an ``ApiError`` with its status and text, an ``InvalidListing`` or
    ``InvalidCursor`` with 400, and what takes too long with 503. The API uses no cookies, so there is nothing that
    cross-site requests could abuse and no CSRF token.
    """

    def decorate(view: DatabaseView) -> Callable[..., Any]:
        @rated(kind, form)
        @csrf_exempt
        @wraps(view)
        async def answer(request: HttpRequest, **arguments: str) -> HttpResponseBase:
            if request.method == "OPTIONS":
                return offered(*methods)
            if request.method not in methods:
                refusal = error_response(form, 405, f"This registry does not offer {request.method} here.")
                refusal["Allow"] = ", ".join(methods)
                return refusal
            try:
                return await reads.run(_guarded, view, form, ApiCall(request, require_worker_env(), arguments))
            except VisitorRefused as refused:
                logger.warning("%s at %s", refused.code, request.path)
                later = error_response(form, 503, str(refused), refused.code)
                later["Retry-After"] = str(refused.retry_after)
                return later

        return answer

    return decorate


def _guarded(view: DatabaseView, form: Form, call: ApiCall) -> HttpResponseBase:
    try:
        return revalidated(call.request, view(call))
    except ApiError as refusal:
        return error_response(form, refusal.status, str(refusal))
    except (InvalidListing, InvalidCursor) as error:
        return error_response(form, 400, str(error), error.code)


def error_response(form: Form, status: int, message: str, code: str = "") -> HttpResponse:
    """Return an error of a dialect in its form; ``code`` is that of its ``status`` unless another is given."""
    content, media = error_content(form, status, code or _CODES.get(status, ApiError.code), message)
    return allow_any_origin(HttpResponse(content, status=status, content_type=media))


def offered(*methods: str) -> HttpResponse:
    """Return the answer to OPTIONS: what a route offers, and that pages of any origin may read there."""
    answer = HttpResponse(status=204, headers={"Allow": ", ".join((*methods, "OPTIONS"))})
    if "GET" not in methods:
        return answer
    allow_any_origin(answer)
    answer["Access-Control-Allow-Methods"] = ", ".join(SAFE)
    answer["Access-Control-Allow-Headers"] = "Authorization, Content-Type, If-None-Match"
    answer["Access-Control-Max-Age"] = "3600"
    return answer


def revalidated(request: HttpRequest, answer: HttpResponseBase) -> HttpResponseBase:
    """Give JSON that was read an ETag, or answer 304; what is not to be stored has none."""
    if request.method not in SAFE or answer.status_code != 200 or not isinstance(answer, HttpResponse):
        return answer
    if (
        answer.get("Content-Type") != "application/json"
        or "ETag" in answer
        or "no-store" in answer.get("Cache-Control", "")
    ):
        return answer
    return with_etag(request, answer, hashlib.sha256(answer.content).hexdigest())


def parameter(call: ApiCall, name: str, *, longest: int = LONGEST) -> str:
    """Return a query parameter, empty where it is absent; raise ``ApiError`` for one over ``longest`` or with NUL."""
    value = call.request.GET.get(name, "")
    if len(value) > longest:
        raise ApiError(400, f"The parameter {name} has {len(value)} characters. It can have {longest}.")
    if "\0" in value:
        raise ApiError(400, f"The parameter {name} has a control character, which nothing here is named by.")
    return value


def takes_only(call: ApiCall, *names: str) -> None:
    """Raise ``ApiError`` for a parameter that is not among ``names``: a filter that is ignored would answer falsely."""
    for name in call.request.GET:
        if name not in names:
            known = f"There are: {', '.join(names)}." if names else "There are none."
            raise ApiError(400, f"There is no parameter {visible(name, 40)!r} here. {known}")


def requested_limit(call: ApiCall, default: int, highest: int) -> int:
    """Return the query parameter ``limit``, from 1 to ``highest``; raise ``ApiError`` where it is no such number."""
    try:
        return limit_in(call.request.GET.get("limit", ""), default, highest)
    except ValueError as error:
        raise ApiError(400, str(error)) from error


def json_body(call: ApiCall) -> dict[str, Any]:
    """Return the JSON object in the body of a request; raise ``ApiError`` for any other body."""
    body = json_value(call)
    if not isinstance(body, dict):
        raise ApiError(400, "The body is a JSON object.")
    return body


def json_value(call: ApiCall) -> Any:
    """Return the JSON in the body of a request; raise ``NotJson`` for what is none, and ``ApiError`` for too much."""
    length = call.request.headers.get("Content-Length") or "0"
    # A server of HTTP refuses such a header; another way in may not.
    if not (length.isascii() and length.isdigit()):
        raise ApiError(400, "The header Content-Length is no number.")
    if len(length) > _LENGTH_DIGITS or int(length) > _BODY_LIMIT:
        raise ApiError(413, "The body is too long.")
    try:
        return json.loads(call.request.body or b"{}")
    except (ValueError, RecursionError) as error:
        raise NotJson(400, "The body is not JSON.") from error
