"""What the API's calls about submissions, listings and jobs share: reading a body, and answering an error."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

from marketplace.api.http import SAFE, allow_any_origin, offered, revalidated
from submissions.chosen_audiences import AudienceRefused
from submissions.discovery import NoSkillFound
from submissions.intake import IntakeBusy
from submissions.source.errors import InvalidRepositoryURL, SourceError
from vskill.errors import VskillError
from vskill.hidden_characters import visible
from vskill.kv.errors import EntryUnavailable, InvalidCursor
from vskill.web.query_strings import limit_in

logger = logging.getLogger(__name__)

MAX_BODY: Final = 64 * 1024
Call = Callable[..., Awaitable[HttpResponse]]


class BadRequest(VskillError):
    """A call that cannot be understood; nothing was done."""

    code = "bad_request"


class BodyTooLarge(VskillError):
    """A body that is larger than any that could be meant; nothing was done."""

    code = "too_large"


def error_answer(error: VskillError, status: int) -> JsonResponse:
    """Return the answer for an error; 503 asks to try again in ten seconds."""
    response = JsonResponse({"error": error.code, "message": str(error)}, status=status)
    if status == 503:
        response["Retry-After"] = "10"
    return response


def not_allowed(request: HttpRequest, methods: str) -> HttpResponse:
    """Return the answer for a method that is not among ``methods``; OPTIONS is told which are."""
    if request.method == "OPTIONS":
        return offered(*methods.split(", "))
    message = f"This registry does not offer {request.method} here."
    response = JsonResponse({"error": "method_not_allowed", "message": message}, status=405)
    response["Allow"] = methods
    return response


def read_from_anywhere(
    view: Callable[..., Awaitable[HttpResponse]],
) -> Callable[..., Coroutine[Any, Any, HttpResponseBase]]:
    """Let pages of any origin read what a view answers to a safe method, with an ETag; no cookie is involved.

    Caches ask each time: a submission moves, and what is withdrawn leaves its list.
    """

    @wraps(view)
    async def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        answer = await view(request, *args, **kwargs)
        if request.method not in SAFE:
            return answer
        if answer.status_code == 200:
            answer["Cache-Control"] = "no-cache"
        return revalidated(request, allow_any_origin(answer))

    return answered


def body_object(request: HttpRequest, kept: str = "Nothing was submitted.") -> dict[str, Any]:
    """Return the JSON object that a request sends; raises BadRequest and BodyTooLarge, which end with ``kept``."""
    if len(request.body) > MAX_BODY:
        raise BodyTooLarge(f"The body is larger than {MAX_BODY // 1024} KiB. {kept}")
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError):
        raise BadRequest(f"The body is not JSON. {kept}") from None
    if not isinstance(body, dict):
        raise BadRequest(f"The body is not an object. {kept}")
    return body


def takes_only(request: HttpRequest, *names: str) -> None:
    """Raise BadRequest for a parameter that is not among ``names``: a filter that is ignored would answer falsely."""
    for name in request.GET:
        if name not in names:
            known = f"There are: {', '.join(names)}." if names else "There are none."
            raise BadRequest(f"There is no parameter {visible(name, 40)!r} here. {known}")


def texts_of(body: dict[str, Any], *names: str) -> dict[str, str]:
    """Return the texts of an object by their names, '' where one is missing; raises BadRequest."""
    texts: dict[str, str] = {}
    for name in names:
        value = body.get(name) or ""
        if not isinstance(value, str):
            raise BadRequest(f"{name!r} is not a text. Nothing was submitted.")
        texts[name] = value
    return texts


def limit_of(request: HttpRequest, default: int, highest: int) -> int:
    """Return the parameter ``limit``, from 1 to ``highest``; raises BadRequest where it is no such number."""
    try:
        return limit_in(request.GET.get("limit", ""), default, highest)
    except ValueError as error:
        raise BadRequest(str(error)) from None


def repository_of(texts: dict[str, str]) -> str:
    """Return the address of a repository that a body names; raises BadRequest where it names none."""
    if not texts["repoUrl"]:
        raise BadRequest("'repoUrl' is missing: the address of a git repository. Nothing was submitted.")
    return texts["repoUrl"]


def _status_of(error: VskillError) -> int:
    if isinstance(error, BadRequest | InvalidRepositoryURL | InvalidCursor):
        return 400
    if isinstance(error, BodyTooLarge):
        return 413
    if isinstance(error, SourceError):
        return 503 if error.transient else 422
    return 422 if isinstance(error, NoSkillFound | AudienceRefused) else 503


def errors_answered(call: Call) -> Call:
    """Answer the errors of a call: 4xx where another call would do, 503 where a later one may."""

    @wraps(call)
    async def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return await call(request, *args, **kwargs)
        except EntryUnavailable:
            # The database is away, which the middleware says in the same words everywhere.
            raise
        except VskillError as error:
            status = _status_of(error)
            if status == 503 and not isinstance(error, SourceError | IntakeBusy):
                # All other errors are the registry's own: an entry that cannot be read, for example.
                logger.error("a call of the API failed: %s", error)
            return error_answer(error, status)

    return answered
