"""Who sends a request: the one place that says so, whatever the visitor proves it by."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest

# Where a middleware leaves the owner of a valid token; the session is then not looked at.
TOKEN_OWNER: Final = "token_owner"  # noqa: S105 - the name of an attribute
_NAME: Final = "visitor_name"
_SAFE: Final = ("GET", "HEAD", "OPTIONS")


def visitor_of(request: HttpRequest) -> AbstractBaseUser | None:
    """Return the active user who sends ``request``, or ``None`` for a stranger.

    A token counts before the session. A session does not count for a request that changes something and comes from a
    page of another origin: views of the API take no token of a form. It asks the database once for each request, and
    not at all without a cookie; call it on a thread that may.
    """
    if (owner := getattr(request, TOKEN_OWNER, None)) is not None:
        found: Any = owner
        return found if found.is_active else None
    if settings.SESSION_COOKIE_NAME not in request.COOKIES or _of_another_origin(request):
        return None
    user: Any = getattr(request, "user", None)
    return user if user is not None and user.is_authenticated and user.is_active else None


def _of_another_origin(request: HttpRequest) -> bool:
    if request.method in _SAFE or (origin := request.META.get("HTTP_ORIGIN")) is None:
        return False
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return False
    try:
        return urlsplit(str(origin)).netloc != request.get_host()
    except ValueError:
        return True


def remember_name(request: HttpRequest, user: AbstractBaseUser) -> None:
    """Keep the name of ``user``, who sends ``request``, for the header of its page."""
    setattr(request, _NAME, user.get_username())


def name_of_visitor(request: HttpRequest | None) -> str:
    """Return the name that was kept, without a query; an empty text where nobody is known, or nobody asked."""
    return str(getattr(request, _NAME, ""))
