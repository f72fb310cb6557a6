"""Middleware: the environment of a request, the answer while the database is unavailable, and security headers."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, InternalError, OperationalError
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    StreamingHttpResponse,
)
from django.template.loader import render_to_string

from vskill.environments import UnknownEnvironment, WorkerEnv, environment_for_host
from vskill.kv.errors import EntryUnavailable
from vskill.kv.outcomes import Status
from vskill.processes.machine_faults import machine_fault
from vskill.web.unserved import unserved
from vskill.worker_context import run_with_worker_env
from vskill.worker_results import end

GetResponse = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]

logger = logging.getLogger(__name__)

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class _Middleware:
    """Base of a middleware that is synchronous under WSGI and asynchronous under ASGI."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(cast(Callable[..., Any], self))


class WorkerEnvMiddleware(_Middleware):
    """Run each request inside the environment that its host name selects."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Process the request in the scope of its environment; answer 421 where no environment serves the host."""
        # PostgreSQL refuses NUL in a query, such as the one for the session, and a quoted cookie can hold it.
        request.COOKIES = {name: value for name, value in request.COOKIES.items() if "\0" not in value}
        if self.is_async:
            return self._answer(request)
        if (env := _environment_of(request)) is None:
            return _misdirected()
        return _stream_in_scope(env, cast(HttpResponseBase, run_with_worker_env(env, self.get_response, request)))

    def process_view(self, request: HttpRequest, _view: Any, _args: Any, _kwargs: Any) -> None:
        """Answer 404 to a path with a NUL character, which nothing is named by and PostgreSQL refuses in a query.

        The admin reads a query string without it.
        """
        if "\0" in request.path_info:
            raise Http404("No name has a NUL character.")
        if request.path_info.startswith("/admin/"):
            _drop_nul(request)

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        if (env := _environment_of(request)) is None:
            return _misdirected()
        answering = cast(Awaitable[HttpResponseBase], run_with_worker_env(env, self.get_response, request))
        return _stream_in_scope(env, await answering)


def _drop_nul(request: HttpRequest) -> None:
    """Remove NUL from a query string: Django's admin passes the filters of a list to the database unchecked."""
    query = str(request.META.get("QUERY_STRING", ""))
    while "%00" in query or "\0" in query:
        query = query.replace("%00", "").replace("\0", "")
        request.META["QUERY_STRING"] = query
        request.__dict__.pop("GET", None)


def _environment_of(request: HttpRequest) -> WorkerEnv | None:
    try:
        return environment_for_host(request.get_host())
    except (UnknownEnvironment, DisallowedHost):
        return None


def _misdirected() -> HttpResponse:
    message = "This server does not serve that host name. Add it to VSKILL_HOSTS.\n"
    return HttpResponse(message, status=421, content_type="text/plain")


def _stream_in_scope(env: WorkerEnv, response: HttpResponseBase) -> HttpResponseBase:
    # A streamed body is generated, and ended, after the view has returned, when the scope of the request has ended.
    if not isinstance(response, StreamingHttpResponse) or isinstance(response, FileResponse):
        return response
    content = response.streaming_content
    # What the view gave to the response; content is a generator of Django's around it, which does not end it.
    given = getattr(response, "_iterator", None)
    # Its close(), where it has one, is called when the response is closed.
    closers: list[Callable[..., Any]] = getattr(response, "_resource_closers", [])
    closers[:] = [partial(run_with_worker_env, env, close) for close in closers]
    if isinstance(content, AsyncIterable):

        async def parts() -> AsyncIterator[bytes]:
            try:
                async for part in content:
                    yield part
            finally:
                # Where a client leaves, the event loop would end it after its scope.
                await end(given)

        response.streaming_content = run_with_worker_env(env, parts)
    else:

        def sync_parts() -> Iterator[bytes]:
            yield from content

        response.streaming_content = run_with_worker_env(env, sync_parts)
    return response


class DatabaseUnavailableMiddleware(_Middleware):
    """Answer 503 with Retry-After while the database is unavailable, and never an empty page.

    An exception in another middleware does not arrive here, because Django turns it into an answer where it is raised:
    ``vskill.views.server_error`` handles it.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Pass the request on; an exception of the view arrives in ``process_exception``."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase | None:
        """Return the 503 where the database is unavailable, or ``None`` for any other exception."""
        return unserved(request, exception) or unavailable(request, exception)


def unavailable(request: HttpRequest, exception: BaseException | None) -> HttpResponseBase | None:
    """Return the 503 for an exception that means that the database is unavailable, or ``None`` for any other.

    That is an error of the connection, or an entry that was needed and could not be read in time or at all. The answer
    is JSON below ``/api/`` and a page elsewhere.
    """
    if isinstance(exception, EntryUnavailable):
        away = exception.status in (Status.UNREADABLE, Status.TIMED_OUT)
    else:
        # InternalError is how PostgreSQL answers a write while it is read-only.
        away = isinstance(exception, (OperationalError, InterfaceError, InternalError))
    if not away and machine_fault(exception) is None:
        return None
    # The text promises nothing about the request itself: a session is saved only after the page has done its work.
    subject = "database does not answer" if away else "server cannot do that"
    message = f"The {subject} right now. What had been stored is kept; please try again in a moment."
    code = "database_unavailable" if away else "server_unavailable"
    logger.error("%s at %s: %r", code.replace("_", " "), request.path, exception)
    response: HttpResponseBase
    if request.path.startswith("/api/"):
        response = JsonResponse({"error": code, "message": message}, status=503)
    else:
        # Without the request, whose context processors would query the database for the user.
        response = HttpResponse(render_to_string("503.html", {"message": message}), status=503)
    response["Retry-After"] = "10"
    return response


class SecurityHeadersMiddleware(_Middleware):
    """Set the content security policy and the permissions policy of every answer."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Add the headers that the answer does not have yet."""
        response = self.get_response(request)
        if isinstance(response, HttpResponseBase):
            return self._add(response)

        async def answer() -> HttpResponseBase:
            return self._add(await response)

        return answer()

    def _add(self, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Permissions-Policy", "interest-cohort=()")
        return response
