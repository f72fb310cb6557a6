"""What is limited: each view says what kind of request it answers, and in what form its clients read errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, TypeVar

from django.conf import settings
from django.http import HttpRequest
from django.urls import Resolver404, resolve

_ATTRIBUTE: Final = "rated"
_SAFE: Final = ("GET", "HEAD", "OPTIONS")
# Characters of a path; a client can send as many paths as it likes, and as long.
_LONGEST_KEPT: Final = 128

View = TypeVar("View", bound=Callable[..., Any])


class Kind(StrEnum):
    """A kind of request that has a limit of its own."""

    SUBMISSIONS = "submissions"
    READS = "reads"
    DOWNLOADS = "downloads"
    LOGINS = "logins"
    UPLOADS = "uploads"


class Form(StrEnum):
    """The form of an error: a page for people, plain text for clients that print it, JSON for programs.

    ``PROBLEM`` is the JSON of RFC 9457, which apm reads, and ``RPC`` that of JSON-RPC, for clients of MCP.
    """

    PAGE = "page"
    TEXT = "text"
    JSON = "json"
    PROBLEM = "problem"
    RPC = "rpc"


@dataclass(frozen=True)
class Rated:
    """What a view said of itself; ``kind`` is ``None`` where its requests are not counted."""

    kind: Kind | None
    form: Form


# A page, and an address that leads nowhere.
DEFAULT: Final = Rated(Kind.READS, Form.PAGE)
# In what form addresses below these are answered that lead nowhere, by the first that fits.
_NOWHERE: Final = (
    *(
        (f"/api/v1/{name}", Form.JSON)
        for name in ("submissions", "listings", "jobs", "external-scans", "webhooks", "review", "operate")
    ),
    ("/api/cli/device", Form.JSON),
    ("/api/apm/", Form.PROBLEM),
    ("/api/", Form.TEXT),
)


def rated(kind: Kind | None, form: Form = Form.PAGE) -> Callable[[View], View]:
    """Return a decorator by which a view says what ``kind`` its requests are, and the ``form`` of its errors.

    Submissions, uploads and logins are what is sent; looking at the form for them is a read. ``None`` counts nothing.
    """

    def mark(view: View) -> View:
        setattr(view, _ATTRIBUTE, Rated(kind, form))
        return view

    return mark


def rating_of(request: HttpRequest) -> Rated:
    """Return what kind of request this is, and in what form it is answered."""
    found = _of_path(request.path_info)
    if found.kind in (Kind.SUBMISSIONS, Kind.LOGINS, Kind.UPLOADS) and request.method in _SAFE:
        return Rated(Kind.READS, found.form)
    return found


def form_of(path: str) -> Form:
    """Return the form of errors at a path, for an answer before there is a request."""
    return _of_path(path).form


def _of_path(path: str) -> Rated:
    return (_known if len(path) <= _LONGEST_KEPT else _found)(path, settings.ROOT_URLCONF)


def _found(path: str, urlconf: str) -> Rated:
    try:
        rating: Rated | None = getattr(resolve(path, urlconf).func, _ATTRIBUTE, None)
    except Resolver404:
        rating = None
    if rating is not None:
        return rating
    return next((Rated(Kind.READS, form) for start, form in _NOWHERE if path.startswith(start)), DEFAULT)


# Finding the view of a path takes longer than counting its request.
_known = lru_cache(maxsize=4096)(_found)
