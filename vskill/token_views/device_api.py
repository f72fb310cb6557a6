"""The two calls of a program that logs in as a device, in the form of RFC 8628 as clawhub speaks it."""

from __future__ import annotations

import json
from typing import Any, Final

from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt

from vskill.access_tokens.device_logins import INTERVAL, LIFETIME, DeviceRefused, begin, collect
from vskill.access_tokens.scopes import Scope, UnknownScope
from vskill.accounts.access import asks_for
from vskill.kv.threads import writers
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.worker_context import require_worker_env

_LONGEST_BODY: Final = 16 * 1024
# What clawhub asks for.
_MEANS: Final = {"write": f"{Scope.SUBMIT} {Scope.PUBLISH}"}


# csrf_exempt: neither call reads a cookie.
@rated(Kind.LOGINS, Form.JSON)
@asks_for(None)
@csrf_exempt
async def device_code(request: HttpRequest) -> JsonResponse:
    """Give a program its secret and the code that it shows to a person."""
    env = require_worker_env()
    body = _body(request)
    if isinstance(body, JsonResponse):
        return body
    asked = _text(body, "scope") or Scope.READ
    scopes = " ".join(_MEANS.get(one, one) for one in asked.split())
    try:
        begun = await writers.run(begin, env, label=_text(body, "label"), scopes=scopes)
    except UnknownScope as error:
        return _error(400, "invalid_scope", str(error))
    except DeviceRefused as error:
        return _error(503, error.error, str(error))
    base = env.public_url or f"{request.scheme}://{request.get_host()}"
    return _answer(
        {
            "device_code": begun.device_code,
            "user_code": begun.user_code,
            "verification_uri": f"{base}{reverse('device')}",
            "expires_in": int(LIFETIME.total_seconds()),
            "interval": INTERVAL,
        }
    )


@rated(Kind.READS, Form.JSON)
@asks_for(None)
@csrf_exempt
async def device_token(request: HttpRequest) -> JsonResponse:
    """Give a program that was let in its token, or say in a word what it waits for."""
    body = _body(request)
    if isinstance(body, JsonResponse):
        return body
    try:
        token, scopes = await writers.run(collect, require_worker_env(), _text(body, "device_code"))
    except DeviceRefused as error:
        return _error(400, error.error, str(error))
    return _answer({"access_token": token, "token_type": "Bearer", "scope": scopes})


def _body(request: HttpRequest) -> dict[str, Any] | JsonResponse:
    if request.method != "POST":
        answer = _error(405, "method_not_allowed", f"This registry does not offer {request.method} here.")
        answer["Allow"] = "POST"
        return answer
    if len(request.body) > _LONGEST_BODY:
        return _error(413, "too_large", "The body is too long.")
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        return _error(400, "invalid_request", "The body is a JSON object.")
    return body


def _text(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def _error(status: int, error: str, message: str) -> JsonResponse:
    # The first two are those of OAuth, the third is what this registry's other calls say.
    return _answer({"error": error, "error_description": message, "message": message}, status)


def _answer(body: dict[str, Any], status: int = 200) -> JsonResponse:
    answer = JsonResponse(body, status=status)
    answer["Cache-Control"] = "no-store"
    return answer
