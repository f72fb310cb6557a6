"""What scope a token needs for a view: its view says so where the method alone does not tell."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar

from django.conf import settings
from django.http import HttpRequest
from django.urls import Resolver404, resolve

from vskill.access_tokens.scopes import Scope

_ATTRIBUTE: Final = "needs_scope"
# Characters of a path; a client can send as many paths as it likes, and as long.
_LONGEST_KEPT: Final = 128

View = TypeVar("View", bound=Callable[..., Any])


def needs(*scopes: Scope) -> Callable[[View], View]:
    """Return a decorator by which a view says that its requests which change something need one of ``scopes``."""

    def mark(view: View) -> View:
        setattr(view, _ATTRIBUTE, scopes)
        return view

    return mark


def scopes_of_view(request: HttpRequest) -> tuple[Scope, ...]:
    """Return the scopes of which the view of ``request`` needs one; none where it has said nothing."""
    path = request.path_info
    return (_known if len(path) <= _LONGEST_KEPT else _found)(path, settings.ROOT_URLCONF)


def _found(path: str, urlconf: str) -> tuple[Scope, ...]:
    try:
        return getattr(resolve(path, urlconf).func, _ATTRIBUTE, ())
    except Resolver404:
        return ()


_known = lru_cache(maxsize=4096)(_found)
