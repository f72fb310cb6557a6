"""Middleware: the environment of a request, a database that is away, and the headers of every answer."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError
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
from vskill.worker_context import run_with_worker_env

GetResponse = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]

logger = logging.getLogger(__name__)

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class _Middleware:
    """Both kinds of middleware in one: synchronous below WSGI, asynchronous below ASGI."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(cast(Callable[..., Any], self))


class WorkerEnvMiddleware(_Middleware):
    """Answer each request inside the environment that its host name chooses."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Run the rest of the request in its scope; 421 for a host that no environment serves."""
        if self.is_async:
            return self._answer(request)
        if (env := _environment_of(request)) is None:
            return _misdirected()
        return _stream_in_scope(env, cast(HttpResponseBase, run_with_worker_env(env, self.get_response, request)))

    def process_view(self, request: HttpRequest, _view: Any, _args: Any, _kwargs: Any) -> None:
        """Answer 404 to an address with a NUL character: nothing has such a name, and PostgreSQL refuses to look."""
        if "\0" in request.path_info:
            raise Http404("No name has a NUL character.")

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        if (env := _environment_of(request)) is None:
            return _misdirected()
        answering = cast(Awaitable[HttpResponseBase], run_with_worker_env(env, self.get_response, request))
        return _stream_in_scope(env, await answering)


def _environment_of(request: HttpRequest) -> WorkerEnv | None:
    try:
        return environment_for_host(request.get_host())
    except (UnknownEnvironment, DisallowedHost):
        return None


def _misdirected() -> HttpResponse:
    message = "This server does not serve that host name. Add it to VSKILL_HOSTS.\n"
    return HttpResponse(message, status=421, content_type="text/plain")


def _stream_in_scope(env: WorkerEnv, response: HttpResponseBase) -> HttpResponseBase:
    # A streamed body is made after the view has returned, when the scope of the request has ended.
    if not isinstance(response, StreamingHttpResponse) or isinstance(response, FileResponse):
        return response
    content = response.streaming_content
    if isinstance(content, AsyncIterable):

        async def parts() -> AsyncIterator[bytes]:
            async for part in content:
                yield part

        response.streaming_content = run_with_worker_env(env, parts)
    else:

        def sync_parts() -> Iterator[bytes]:
            yield from content

        response.streaming_content = run_with_worker_env(env, sync_parts)
    return response


class DatabaseUnavailableMiddleware(_Middleware):
    """Answer 503 with Retry-After while the database is away; never an empty page.

    What another middleware raises does not come here, because Django makes an answer of it where it is raised: that one
    is ``vskill.views.server_error``.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Pass the request on; what a view raises arrives in ``process_exception``."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponseBase | None:
        """Return the 503 for a database that is away; leave every other exception alone."""
        return unavailable(request, exception)


def unavailable(request: HttpRequest, exception: BaseException | None) -> HttpResponseBase | None:
    """Return the 503 for an error of the connection, met by a query or by the read of an entry that was needed; return
    ``None`` for everything else."""
    if isinstance(exception, EntryUnavailable):
        away = exception.status in (Status.UNREADABLE, Status.TIMED_OUT)
    else:
        away = isinstance(exception, (OperationalError, InterfaceError))
    if not away:
        return None
    logger.error("database unavailable at %s: %s", request.path, exception)
    # A session that cannot be saved comes after whatever the page has done, so nothing is promised about that.
    message = "The database does not answer right now. What had been stored is kept; please try again in a moment."
    response: HttpResponseBase
    if request.path.startswith("/api/"):
        response = JsonResponse({"error": "database_unavailable", "message": message}, status=503)
    else:
        # Without the request: its context processors would ask the database who the user is.
        response = HttpResponse(render_to_string("503.html", {"message": message}), status=503)
    response["Retry-After"] = "10"
    return response


class SecurityHeadersMiddleware(_Middleware):
    """Set the content security policy, and forbid guessing of content types."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Add the headers to the answer."""
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
