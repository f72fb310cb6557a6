"""A request that Django refuses to read is answered in the form of its client, and costs the log one line."""

from __future__ import annotations

import io
import logging.config
from collections.abc import Iterator

import pytest
from django.test import Client

MANY = "&".join(f"p{number}=1" for number in range(1200))

pytestmark = pytest.mark.django_db


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Collect what the handler that is shipped writes."""
    written = io.StringIO()
    (handler,) = [one for one in logging.getLogger().handlers if one.get_name() == "stderr"]
    assert isinstance(handler, logging.StreamHandler)
    before = handler.setStream(written)
    yield written
    handler.setStream(before)


@pytest.mark.parametrize(
    ("path", "kind", "begins"),
    [
        pytest.param("/skills", "text/html", b"<!doctype html>", id="page"),
        pytest.param("/api/v1/skills", "text/plain", b"This request could not be read", id="clawhub"),
        pytest.param("/api/v1/submissions", "application/json", b'{"error": "bad_request"', id="json"),
        pytest.param("/api/v1/jobs/x", "application/json", b'{"error": "bad_request"', id="json-jobs"),
    ],
)
def test_a_request_with_too_many_parameters(log: io.StringIO, path: str, kind: str, begins: bytes) -> None:
    answer = Client(raise_request_exception=False).get(f"{path}?{MANY}")
    assert answer.status_code == 400
    assert answer.headers["Content-Type"].startswith(kind)
    assert answer.content.strip().startswith(begins)
    lines = log.getvalue().splitlines()
    assert 1 <= len(lines) <= 2, lines
    assert "django.security.TooManyFieldsSent" in lines[0]


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/api", "text/plain"), ("/api/", "text/plain"), ("/api/nothing", "text/plain"), ("/apis", "text/html")],
)
def test_an_unknown_address_of_the_api_is_answered_for_clients(path: str, kind: str) -> None:
    answer = Client().get(path)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith(kind)


@pytest.mark.parametrize("length", ["0.0.1", "\0", "-1", "１", "9" * 5000])
@pytest.mark.parametrize(
    "path",
    [
        *("/api/v1/skills/installs", "/api/v1/skills/x/scan-again", "/api/v1/submissions", "/api/v1/jobs", "/mcp"),
        *("/skills/x/report", "/submit", "/api/v1/webhooks/github", "/admin/login/"),
    ],
)
def test_a_length_that_is_no_number_is_said(length: str, path: str) -> None:
    answer = Client().post(path, b"", content_type="application/json", headers={"Content-Length": length})
    assert (answer.status_code, b"Content-Length" in answer.content) == (400, True)
