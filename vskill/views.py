"""The health check and the page of server errors."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views import defaults
from django.views.decorators.http import require_safe

from vskill.heartbeat import health
from vskill.middleware import unavailable
from vskill.worker_context import require_worker_env

ROLES = ("consumer", "scheduler")


@require_safe
async def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 while web, database, consumer and scheduler are alive, else 503 with the names of the dead ones.

    What the processes say of their machines is for staff, and for requests from this machine.
    """
    env = require_worker_env()
    parts = {"web": {"alive": True}, **await health(env, ROLES, details=await _may_see_details(request))}
    dead = [name for name, part in parts.items() if not part["alive"]]
    body = {"status": "dead parts" if dead else "ok", "dead": dead, "environment": env.name, "parts": parts}
    response = JsonResponse(body, status=503 if dead else 200)
    response["Cache-Control"] = "no-store"
    if dead:
        response["Retry-After"] = "10"
    return response


async def _may_see_details(request: HttpRequest) -> bool:
    # A proxy on this machine says in these headers that it asks for somebody else.
    forwarded = any(name in request.headers for name in ("Forwarded", "X-Forwarded-For", "Via"))
    if request.META.get("REMOTE_ADDR") in ("127.0.0.1", "::1") and not forwarded:
        return True
    return bool((await request.auser()).is_staff)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Answer an error that no view answered: 503 where the database or the machine is unavailable, else 500.

    Addresses below ``/api/`` get JSON.
    """
    # Django calls this handler while it handles the exception and does not pass the exception in any other way.
    if (answer := unavailable(request, sys.exception())) is not None:
        return answer
    if not request.path.startswith("/api/"):
        return defaults.server_error(request)
    message = "Something went wrong here, and nothing was changed by halves. The operators can find it in the log."
    return JsonResponse({"error": "server_error", "message": message}, status=500)
