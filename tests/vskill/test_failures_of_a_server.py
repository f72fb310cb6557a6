"""What a visitor is answered when the machine or the database cannot do what was asked, on every surface."""

from __future__ import annotations

import errno
import os

import pytest
from django.db import InternalError
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import path

from vskill.views import server_error


def full_disk(_request: HttpRequest) -> HttpResponse:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read_only(_request: HttpRequest) -> HttpResponse:
    raise InternalError("cannot execute INSERT in a read-only transaction")


def mistake(_request: HttpRequest) -> HttpResponse:
    raise ValueError("a mistake of ours")


urlpatterns = [
    path("full", full_disk),
    path("api/full", full_disk),
    path("readonly", read_only),
    path("api/readonly", read_only),
    path("mistake", mistake),
    path("api/mistake", mistake),
]
handler500 = server_error

pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db]


@pytest.mark.parametrize(("address", "error"), [("full", "server_unavailable"), ("readonly", "database_unavailable")])
def test_a_machine_or_database_that_cannot_write_is_a_503_in_the_form_of_the_surface(
    client: Client, address: str, error: str
) -> None:
    page = client.get(f"/{address}")
    assert (page.status_code, page["Retry-After"]) == (503, "10")
    assert b"<h1>" in page.content
    answer = client.get(f"/api/{address}")
    assert (answer.status_code, answer["Retry-After"], answer.json()["error"]) == (503, "10", error)


def test_a_mistake_of_ours_below_the_api_is_json_and_says_nothing_of_itself(client: Client) -> None:
    client.raise_request_exception = False
    page, answer = client.get("/mistake"), client.get("/api/mistake")
    assert (page.status_code, answer.status_code) == (500, 500)
    assert answer.json()["error"] == "server_error"
    assert b"mistake of ours" not in page.content + answer.content
