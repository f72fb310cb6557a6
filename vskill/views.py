"""The pages of the ground floor: is everything alive, and what broke?"""

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
async def healthz(_request: HttpRequest) -> JsonResponse:
    """Answer 200 while web, database, consumer and scheduler live, 503 with the names of those that do not."""
    env = require_worker_env()
    parts = {"web": {"alive": True}, **await health(env, ROLES)}
    dead = [name for name, part in parts.items() if not part["alive"]]
    body = {"status": "dead parts" if dead else "ok", "dead": dead, "environment": env.name, "parts": parts}
    response = JsonResponse(body, status=503 if dead else 200)
    response["Cache-Control"] = "no-store"
    if dead:
        response["Retry-After"] = "10"
    return response


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Answer what a middleware let through: 503 for a database that is away (a session that it could neither load nor
    save), 500 for everything else."""
    # Django calls the handler of its errors while it handles the error, and says in no other way which one it is.
    return unavailable(request, sys.exception()) or defaults.server_error(request)
