"""The health check and the page of server errors."""

from __future__ import annotations

import ipaddress
import sys

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.views import defaults
from django.views.decorators.http import require_safe

from vskill.accounts.access import asks_for
from vskill.processes.heartbeat import health, health_reads
from vskill.processes.last_runs import last_runs
from vskill.rate_limits.kinds import form_of, rated
from vskill.visitors.reads import ended_early, reading
from vskill.web.absent import NotThere
from vskill.web.error_forms import error_content
from vskill.web.middleware import unavailable
from vskill.worker_context import require_worker_env

ROLES = ("consumer", "scheduler")
# Nobody waits for these, so one that is overdue is told and is no reason for a 503.
RUNS = ("watch_references",)


@rated(None)
@asks_for(None)
@require_safe
async def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 while web, database, consumer and scheduler are alive, else 503 with the names of the dead ones.

    ``runs`` says when a recurring command of ``RUNS`` ended last, null for never, and whether it is overdue.
    Host names, process numbers, faults and what the processes say of their machines are for staff, and for requests
    from this machine.
    """
    env = require_worker_env()
    details = _from_this_machine(request) or await _is_staff(request)
    web = {"alive": True, **({"reading": reading(), "endedEarly": ended_early()} if details else {})}
    parts = {"web": web, **await health(env, ROLES, details=details)}
    runs = {name: run.as_json() for name, run in (await health_reads.run(last_runs, env, RUNS)).items()}
    dead = [name for name, part in parts.items() if not part["alive"]]
    body = {
        "status": "dead parts" if dead else "ok",
        "dead": dead,
        "environment": env.name,
        "parts": parts,
        "runs": runs,
    }
    response = JsonResponse(body, status=503 if dead else 200)
    response["Cache-Control"] = "no-store"
    if dead:
        response["Retry-After"] = "10"
    return response


def _from_this_machine(request: HttpRequest) -> bool:
    # A proxy on this machine says in one of these headers that it asks for somebody else.
    if any(name in request.headers for name in ("Forwarded", "X-Forwarded-For", "Via")):
        return False
    try:
        return ipaddress.ip_address(str(request.META.get("REMOTE_ADDR", ""))).is_loopback
    except ValueError:
        return False


async def _is_staff(request: HttpRequest) -> bool:
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return False
    user = await request.auser()
    return user.is_active and user.is_staff


def _is_of_the_api(request: HttpRequest) -> bool:
    return f"{request.path}/".startswith("/api/")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer 404: below ``/api/`` in the form that its clients print, with a page elsewhere."""
    if not _is_of_the_api(request):
        if isinstance(exception, NotThere):
            context = {"message": str(exception), "near": exception.near}
            return render(request, "404.html", context, status=404)
        return defaults.page_not_found(request, exception)
    return _for_clients(request, 404, "not_found", "There is nothing at this address.")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer 400 where Django refuses to read a request: in the form of the client, as ``not_found`` does."""
    if not _is_of_the_api(request):
        return defaults.bad_request(request, exception)
    message = "This request could not be read: it has too many parameters, or one that cannot be decoded."
    return _for_clients(request, 400, "bad_request", message)


def _for_clients(request: HttpRequest, status: int, code: str, message: str) -> HttpResponse:
    content, media = error_content(form_of(request.path), status, code, message)
    return HttpResponse(content, status=status, content_type=media)


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Answer an error that no view answered: 503 where the database or the machine is unavailable, else 500.

    Addresses below ``/api/`` get JSON.
    """
    # Django calls this handler while it handles the exception and does not pass the exception in any other way.
    if (answer := unavailable(request, sys.exception())) is not None:
        return answer
    if not _is_of_the_api(request):
        return defaults.server_error(request)
    message = "Something went wrong here, and nothing was changed by halves. The operators can find it in the log."
    return JsonResponse({"error": "server_error", "message": message}, status=500)
