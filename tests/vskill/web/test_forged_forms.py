"""A form that is refused as forged says which origin it came from, and what an operator behind a proxy has to set."""

from __future__ import annotations

import pytest
from django.http import HttpResponse
from django.test import Client

pytestmark = pytest.mark.django_db


def send(origin: str, address: str = "/submit") -> HttpResponse:
    client = Client(enforce_csrf_checks=True)
    response: HttpResponse = client.post(address, {"url": "acme/skills"}, headers={"origin": origin})  # type: ignore[assignment]  # the client's own kind of answer
    return response


@pytest.mark.parametrize("address", ["/submit", "/admin/login/"])
def test_an_origin_that_does_not_match_is_named_with_what_to_set(address: str) -> None:
    response = send("https://skills.example.org", address)
    page = response.content.decode()
    assert response.status_code == 403
    assert "sent from <code>https://skills.example.org</code>" in page
    assert "takes itself for <code>http://testserver</code>" in page
    assert "VSKILL_PUBLIC_URL=https://skills.example.org" in page
    assert "X-Forwarded-Proto" in page
    assert "expired" not in page


def test_an_origin_that_a_browser_hides_comes_without_advice() -> None:
    page = send("null").content.decode()
    assert "sent from <code>null</code>" in page
    assert "VSKILL_PUBLIC_URL" not in page


def test_an_origin_is_shown_as_text_and_nothing_else() -> None:
    page = send("https://a.example/<script>\u202e").content.decode()
    assert "<script>\u202e" not in page
    assert "&lt;script&gt;" in page


def test_a_form_of_this_server_without_its_cookie_had_expired() -> None:
    response = send("http://testserver")
    page = response.content.decode()
    assert response.status_code == 403
    assert "The form had expired" in page
    assert "VSKILL_PUBLIC_URL" not in page
