"""The page of the ground floor: is everything alive?"""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from vskill.heartbeat import health
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
