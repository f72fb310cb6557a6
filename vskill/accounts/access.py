"""The rule of access: who may send a request at all; what is shown is the rule of ``marketplace.skills.visibility``.

What a request asks for follows from its method, unless its view says otherwise. The middleware ``vskill.web.access``
enforces the rule on every address, also on those that lead nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar

from django.conf import settings
from django.core import signing
from django.http import HttpRequest
from django.urls import Resolver404, resolve

from vskill.accounts.roles import Action, may
from vskill.environments import WorkerEnv

_ATTRIBUTE: Final = "asks_for"
_UNSAID: Final = object()
_SAFE: Final = ("GET", "HEAD", "OPTIONS")
# What a stranger may, by the environment's ``policy.access``.
_OF_STRANGERS: Final = {
    "open": frozenset({Action.READ, Action.SUBMIT}),
    "read-only": frozenset({Action.READ}),
    "closed": frozenset[Action](),
}
_PASS: Final = "pass"  # noqa: S105 - the name of a parameter
_SALT: Final = "vskill.accounts.access"
_PASS_SECONDS: Final = 24 * 3600
# Characters of a path; a client can send as many paths as it likes, and as long.
_LONGEST_KEPT: Final = 128

View = TypeVar("View", bound=Callable[..., Any])


def asks_for(action: Action | None) -> Callable[[View], View]:
    """Return a decorator by which a view says what its requests ask for, whatever their method.

    ``None`` is nothing: anybody may send them, or they carry a proof of their own, which the view checks.
    """

    def mark(view: View) -> View:
        setattr(view, _ATTRIBUTE, action)
        return view

    return mark


def action_of(request: HttpRequest) -> Action | None:
    """Return what ``request`` asks for: to read with a safe method, else to submit.

    The admin asks for permissions itself.
    """
    path = request.path_info
    said = (_known if len(path) <= _LONGEST_KEPT else _said)(path, settings.ROOT_URLCONF)
    if said is not _UNSAID:
        action: Action | None = said
        return action
    return Action.READ if request.method in _SAFE else Action.SUBMIT


def _said(path: str, urlconf: str) -> Any:
    try:
        found = resolve(path, urlconf)
    except Resolver404:
        return _UNSAID
    if "admin" in found.app_names:
        return Action.READ
    return getattr(found.func, _ATTRIBUTE, _UNSAID)


_known = lru_cache(maxsize=4096)(_said)


def strangers_may(env: WorkerEnv, action: Action | None) -> bool:
    """Return whether nobody has to be known for ``action`` in an environment; this costs nothing."""
    return action is None or action in _OF_STRANGERS[env.policy.access]


def permitted(user: Any, env: WorkerEnv, action: Action | None) -> bool:
    """Return whether ``user``, or a stranger where it is ``None``, may do ``action`` in an environment."""
    return action is None or strangers_may(env, action) or may(user, env, action)


def is_closed(env: WorkerEnv) -> bool:
    """Return whether strangers may read nothing in an environment."""
    return not strangers_may(env, Action.READ)


def offers_sign_in(env: WorkerEnv) -> bool:
    """Return whether pages lead to the sign-in: it opens more than strangers may, or a provider is configured."""
    return env.policy.access != "open" or bool(settings.SOCIALACCOUNT_PROVIDERS)


def with_pass(env: WorkerEnv, path: str) -> str:
    """Return ``path`` for a program outside that is asked to read it: in a closed registry, with a pass for one day.

    The pass is signed, and opens this path to whoever has it, to read alone.
    """
    return f"{path}?{_PASS}={signing.dumps([env.name, path], salt=_SALT)}" if is_closed(env) else path


def has_pass(request: HttpRequest, env: WorkerEnv) -> bool:
    """Return whether ``request`` reads the path of the valid pass that it bears."""
    given = request.GET.get(_PASS, "")
    if not given or request.method not in _SAFE:
        return False
    try:
        return bool(signing.loads(given, salt=_SALT, max_age=_PASS_SECONDS) == [env.name, request.path])
    except signing.BadSignature:
        return False
