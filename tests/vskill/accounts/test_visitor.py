"""Who sends a request: the owner of a token, or of a session of this origin."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.test import RequestFactory

from vskill.accounts.visitor import TOKEN_OWNER, visitor_of


def request_of(user: Any, method: str = "GET", *, cookie: bool = True, origin: str | None = None) -> Any:
    request = RequestFactory().generic(method, "/api/v1/submissions")
    if origin is not None:
        request.META["HTTP_ORIGIN"] = origin
    if cookie:
        request.COOKIES["sessionid"] = "x"
    request.user = user
    return request


def test_a_session_is_that_of_its_active_user() -> None:
    ada = User(username="ada")
    assert visitor_of(request_of(ada)) is ada
    assert visitor_of(request_of(AnonymousUser())) is None
    assert visitor_of(request_of(User(username="gone", is_active=False))) is None
    assert visitor_of(request_of(ada, cookie=False)) is None


@pytest.mark.parametrize(
    ("method", "origin", "known"),
    [
        ("POST", None, True),
        ("POST", "http://testserver", True),
        ("POST", "http://evil.test", False),
        ("POST", "http://testserver.evil.test", False),
        ("POST", "null", False),
        ("POST", "http://[", False),
        ("GET", "http://evil.test", True),
    ],
)
def test_a_session_changes_nothing_for_a_page_of_another_origin(method: str, origin: str | None, known: bool) -> None:
    request = request_of(User(username="ada"), method, origin=origin)
    assert (visitor_of(request) is not None) is known


def test_the_owner_of_a_token_comes_before_the_session_and_has_to_be_active() -> None:
    for active in (True, False):
        owner = User(username="owner", is_active=active)
        request = request_of(User(username="ada"))
        setattr(request, TOKEN_OWNER, owner)
        assert visitor_of(request) is (owner if active else None)
