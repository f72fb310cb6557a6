"""Middleware that enforces the rule of access on every request, and knows who sends it where that matters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast
from urllib.parse import urlencode, urlsplit

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.decorators import sync_and_async_middleware

from vskill.access_tokens.needed_scopes import scopes_of_view
from vskill.access_tokens.scopes import Scope
from vskill.accounts.access import action_of, has_pass, is_closed, permitted, strangers_may
from vskill.accounts.audiences import audiences_of, seen_as
from vskill.accounts.roles import Action
from vskill.accounts.visitor import remember_name, visitor_of
from vskill.environments import WorkerEnv
from vskill.rate_limits.kinds import Form, rating_of
from vskill.visitors.errors import VisitorRefused
from vskill.visitors.reads import page_reads
from vskill.web.bearer_tokens import lacks, token_of, unauthorised
from vskill.web.refusals import for_programs
from vskill.web.unserved import unserved
from vskill.worker_context import require_worker_env

_SHOWS_A_PAGE: Final = ("GET", "HEAD")
# What a token has to be made for where the view says nothing else.
_SCOPES: Final = {Action.READ: Scope.READ, Action.SUBMIT: Scope.SUBMIT}


@sync_and_async_middleware
def ask_for_sign_in(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Refuse a request that its sender may not send: a browser of a stranger is led to the sign-in.

    Others get 401, and who is known but has no such role 403, in the form that the clients of the address read. During
    the request is seen what the sender belongs to. Where strangers may do all that is asked for and bring neither
    session nor token, it asks nobody and costs no query.
    """
    if iscoroutinefunction(get_response):

        async def answer_later(request: HttpRequest) -> HttpResponseBase:
            env = require_worker_env()
            seen: tuple[str, ...] = ()
            if _has_to_be_known(request, env):
                try:
                    refusal, seen = await page_reads.run(_look, request, env)
                except VisitorRefused as error:
                    return cast(HttpResponseBase, unserved(request, error))
                if refusal is not None:
                    return refusal
            with seen_as(seen):
                answer = await cast(Awaitable[HttpResponseBase], get_response(request))
            return _kept_private(answer, request, env)

        return answer_later

    def answer(request: HttpRequest) -> HttpResponseBase:
        env = require_worker_env()
        seen: tuple[str, ...] = ()
        if _has_to_be_known(request, env):
            refusal, seen = _look(request, env)
            if refusal is not None:
                return refusal
        with seen_as(seen):
            response = cast(HttpResponseBase, get_response(request))
        return _kept_private(response, request, env)

    return answer


def _has_to_be_known(request: HttpRequest, env: WorkerEnv) -> bool:
    if not strangers_may(env, action_of(request)):
        return True
    # For what not everybody is shown, and for the name in the header of pages.
    return _says_who(request)


def _says_who(request: HttpRequest) -> bool:
    return settings.SESSION_COOKIE_NAME in request.COOKIES or token_of(request) is not None


def _look(request: HttpRequest, env: WorkerEnv) -> tuple[HttpResponse | None, tuple[str, ...]]:
    """Return the refusal of a request, if it is refused, and the audiences that its sender belongs to."""
    if (refusal := _refusal(request, env)) is not None:
        return refusal, ()
    token, user = token_of(request), visitor_of(request)
    if user is None or (token is not None and not token.allows(Scope.READ)):
        return None, ()
    return None, audiences_of(user, env)


def _refusal(request: HttpRequest, env: WorkerEnv) -> HttpResponse | None:
    user: Any = visitor_of(request)
    if user is not None:
        remember_name(request, user)
    action = action_of(request)
    if not strangers_may(env, action) and action in _SCOPES:
        needed = scopes_of_view(request) if action is Action.SUBMIT else ()
        if (beyond := lacks(request, *(needed or (_SCOPES[action],)))) is not None:
            return beyond
    if permitted(user, env, action) or (is_closed(env) and has_pass(request, env)):
        return None
    form = rating_of(request).form
    answer = _of_stranger(request, form, action) if user is None else _of_user(request, form, user)
    answer["Cache-Control"] = "no-store"
    patch_vary_headers(answer, ("Cookie", "Authorization", "Accept"))
    return answer


def _of_stranger(request: HttpRequest, form: Form, action: Action | None) -> HttpResponse:
    if form is Form.PAGE and _is_browser(request):
        answer: HttpResponse = HttpResponseRedirect(f"{reverse('sign-in')}?{urlencode({'next': _back_to(request)})}")
        if request.method not in _SHOWS_A_PAGE:
            answer.status_code = 303
        return answer
    what = "This registry is closed" if action is Action.READ else "Strangers only read here"
    return unauthorised(form, f"{what}: sign in, or send a token. Nothing was changed.")


def _of_user(request: HttpRequest, form: Form, user: Any) -> HttpResponse:
    message = (
        f"The account {user.get_username()} has no role in this registry that permits this. "
        "Ask one of its admins for one. Nothing was changed."
    )
    if form is Form.PAGE and _is_browser(request):
        return HttpResponse(render_to_string("403.html", {"message": message, "signed_in": True}, request), status=403)
    return for_programs(form, 403, "forbidden", message)


def _is_browser(request: HttpRequest) -> bool:
    """Return whether this asks for a page to show; what a page fetches by itself would show the sign-in inside it."""
    return "text/html" in request.headers.get("Accept", "") and "HX-Request" not in request.headers


def _back_to(request: HttpRequest) -> str:
    """Return the page to show after the sign-in: this one, or the one with the form that was sent."""
    if request.method in _SHOWS_A_PAGE:
        return request.get_full_path()
    try:
        page = urlsplit(request.headers.get("Referer", ""))
    except ValueError:
        return "/"
    return page.path if page.netloc == request.get_host() and page.path.startswith("/") else "/"


def _kept_private(response: HttpResponseBase, request: HttpRequest, env: WorkerEnv) -> HttpResponseBase:
    """Let no cache between hand to strangers what was answered to somebody, whether or not it was for all."""
    patch_vary_headers(response, ("Cookie", "Authorization"))
    if (is_closed(env) or _says_who(request)) and "no-store" not in response.get("Cache-Control", ""):
        patch_cache_control(response, private=True)
    return response
