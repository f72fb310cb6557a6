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


def needs(scope: Scope) -> Callable[[View], View]:
    """Return a decorator by which a view says what scope its requests need that change something."""

    def mark(view: View) -> View:
        setattr(view, _ATTRIBUTE, scope)
        return view

    return mark


def scope_of_view(request: HttpRequest) -> Scope | None:
    """Return the scope that the view of ``request`` has named, or ``None`` where it has named none."""
    path = request.path_info
    return (_known if len(path) <= _LONGEST_KEPT else _found)(path, settings.ROOT_URLCONF)


def _found(path: str, urlconf: str) -> Scope | None:
    try:
        return getattr(resolve(path, urlconf).func, _ATTRIBUTE, None)
    except Resolver404:
        return None


_known = lru_cache(maxsize=4096)(_found)
