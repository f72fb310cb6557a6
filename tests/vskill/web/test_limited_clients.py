"""A client that asks too much is told so in the form that it reads, and everybody else is served."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.asgi import get_asgi_application
from django.test import AsyncClient, Client, override_settings
from pytest_django import DjangoAssertNumQueries

from vskill.configuration import VARIABLES
from vskill.rate_limits.kinds import Kind
from vskill.web.trusted_proxies import Proxies, TrustProxies

pytestmark = pytest.mark.django_db(transaction=True)

DEFAULTS = {variable.name: variable.default for variable in VARIABLES}


def limits(**rates: str) -> Any:
    """Switch limits on; those that are not named stay off."""
    return override_settings(RATE_LIMITS={kind: rates.get(kind, "") for kind in Kind})


@pytest.fixture
def strict() -> Iterator[None]:
    with limits(submissions="2/hour", reads="2/hour", downloads="2/hour", logins="2/hour"):
        yield


def spend(client: Client, path: str, method: str = "get", **options: Any) -> Any:
    """Use up the two requests of a client, and return the answer to the third."""
    for _ in range(2):
        assert getattr(client, method)(path, **options).status_code != 429
    return getattr(client, method)(path, **options)


SENDING = {"method": "post", "data": "{}", "content_type": "application/json"}


@pytest.mark.parametrize(
    ("path", "options", "content_type", "said"),
    [
        pytest.param("/api/v1/search?q=a", {}, "text/plain", "Too many requests", id="clawhub"),
        pytest.param("/api/search?q=a", {}, "text/plain", "Too many requests", id="skills"),
        pytest.param("/.well-known/agent-skills/index.json", {}, "text/plain", "Too many requests", id="well-known"),
        pytest.param("/api/v1/skills/check-updates", SENDING, "text/plain", "Too many requests", id="vskill"),
        pytest.param("/api/v1/skills/a/file?path=b", {}, "text/plain", "Too many downloads", id="file"),
        pytest.param("/skills/a/download/latest.zip", {}, "text/plain", "Too many downloads", id="archive"),
        pytest.param("/api/v1/download?slug=a", {}, "text/plain", "Too many downloads", id="clawhub-archive"),
        pytest.param("/api/v1/submissions", SENDING, "application/json", "Too many submissions", id="submit"),
        pytest.param("/api/v1/submissions", {}, "application/json", "Too many requests", id="submissions"),
        pytest.param("/api/nothing", {}, "text/plain", "Too many requests", id="api-nowhere"),
        pytest.param("/skills", {}, "text/html", "Too many requests", id="page"),
        pytest.param("/nowhere", {}, "text/html", "Too many requests", id="nowhere"),
        pytest.param("/submit", {"method": "post"}, "text/html", "Too many submissions", id="form"),
        pytest.param("/admin/login/", {"method": "post"}, "text/html", "Too many logins", id="login"),
    ],
)
def test_a_refusal_has_the_form_that_is_read_there(
    client: Client, strict: None, path: str, options: dict[str, Any], content_type: str, said: str
) -> None:
    answer = spend(client, path, **options)
    assert answer.status_code == 429
    assert answer["Content-Type"].startswith(content_type)
    text = answer.content.decode()
    assert said in text
    assert "this registry takes 2 in an hour" in text
    assert "Nothing was" in text
    assert "Try again in" in text
    if content_type == "application/json":
        body = json.loads(text)
        assert (body["error"], str(body["retryAfter"])) == ("rate_limited", answer["Retry-After"])
    if content_type == "text/html":
        assert "<h1>Slower, please</h1>" in text
        assert "default-src 'none'" in answer["Content-Security-Policy"]
    else:
        assert answer["Access-Control-Allow-Origin"] == "*"


def test_a_refusal_says_when_to_come_back_in_both_families_of_headers(client: Client, strict: None) -> None:
    before = time.time()
    answer = spend(client, "/api/v1/search?q=a")
    after = time.time()
    assert answer["X-RateLimit-Limit"] == answer["RateLimit-Limit"] == "2"
    assert answer["X-RateLimit-Remaining"] == answer["RateLimit-Remaining"] == "0"
    assert answer["Retry-After"] == answer["RateLimit-Reset"]
    assert 1 <= int(answer["Retry-After"]) <= 3600
    # A moment, and not a number of seconds.
    assert before < int(answer["X-RateLimit-Reset"]) <= after + 3601
    assert answer["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/skills", "/api/v1/skills", "/api/search?q=a", "/nowhere"])
def test_whoever_is_served_is_told_what_is_left(client: Client, path: str) -> None:
    with limits(reads="10/hour"):
        left = [client.get(path)["RateLimit-Remaining"] for _ in range(3)]
        answer = client.get(path)
    assert left == ["9", "8", "7"]
    assert (answer["X-RateLimit-Remaining"], answer["X-RateLimit-Limit"]) == ("6", "10")
    assert "Retry-After" not in answer


async def test_it_is_the_same_below_asgi(async_client: AsyncClient, strict: None) -> None:
    answers = [await async_client.get("/api/v1/skills") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer["RateLimit-Remaining"] for answer in answers] == ["1", "0", "0"]


def test_a_refusal_costs_no_query(
    client: Client, strict: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client.cookies["sessionid"] = "of somebody"
    spend(client, "/skills")
    with django_assert_num_queries(0):
        assert client.get("/skills").status_code == 429


def test_each_client_and_each_kind_has_its_own_count(client: Client, strict: None) -> None:
    assert spend(client, "/skills").status_code == 429
    assert client.get("/skills", REMOTE_ADDR="203.0.113.7").status_code == 200
    assert client.get("/api/v1/download?slug=a").status_code == 404
    assert client.post("/api/v1/submissions", "{}", content_type="application/json").status_code == 400


def test_looking_at_a_form_is_no_submission_and_no_login(client: Client) -> None:
    with limits(submissions="1/hour", logins="1/hour"):
        for path in ("/submit", "/admin/login/", "/api/v1/submissions"):
            assert {client.get(path).status_code for _ in range(3)} == {200}
            assert "RateLimit-Limit" not in client.get(path)


def test_ipv6_is_counted_by_the_network_of_a_customer(client: Client, strict: None) -> None:
    answers = [client.get("/skills", REMOTE_ADDR=f"2001:db8:1:2::{number:x}").status_code for number in range(4)]
    assert answers == [200, 200, 429, 429]
    assert client.get("/skills", REMOTE_ADDR="2001:db8:1:3::1").status_code == 200


def test_environments_count_apart(client: Client) -> None:
    two = {"public": {"hosts": ["a.example.com"]}, "internal": {"hosts": ["b.example.com"]}}
    with limits(reads="1/hour"), override_settings(VSKILL_ENVIRONMENTS=two, ALLOWED_HOSTS=["*"]):
        seen = [client.get("/api/v1/skills", headers={"host": f"{name}.example.com"}).status_code for name in "aabb"]
    assert seen == [200, 429, 200, 429]


def test_health_checks_and_files_of_pages_are_not_counted(client: Client, strict: None) -> None:
    for path in ("/healthz", "/static/vskill/base.css"):
        assert not [one for one in range(5) if client.get(path).status_code == 429]
    assert client.get("/skills").status_code == 200


def test_a_limit_that_is_off_refuses_nobody(client: Client) -> None:
    with limits():
        assert {client.get("/api/v1/skills").status_code for _ in range(20)} == {200}
        assert "RateLimit-Limit" not in client.get("/api/v1/skills")


def test_the_log_says_once_who_was_refused(client: Client, strict: None, caplog: pytest.LogCaptureFixture) -> None:
    spend(client, "/skills")
    for _ in range(20):
        client.get("/skills", REMOTE_ADDR="127.0.0.1")
    [line] = [record.getMessage() for record in caplog.records]
    assert "limit of clients reached" in line
    assert "refused 127.0.0.1" in line
    assert "VSKILL_TRUSTED_PROXIES" in line


def test_the_defaults_are_far_above_what_a_team_behind_one_address_does() -> None:
    # Fifty people who update thirty skills each in the same minute: a lookup, a version and an archive of each.
    assert DEFAULTS["VSKILL_LIMIT_READS"] == "3000/minute"
    assert DEFAULTS["VSKILL_LIMIT_DOWNLOADS"] == "2000/minute"
    assert 50 * 30 * 2 <= 3000
    assert 50 * 30 <= 2000


def test_a_forged_header_changes_nothing_and_a_proxy_is_believed(strict: None) -> None:
    application = TrustProxies(get_asgi_application(), Proxies(["10.0.0.1"], "X-FORWARDED-FOR"))

    def status(peer: str, claimed: str) -> int:
        return async_to_sync(asked)(application, peer, claimed)

    forged = [status("203.0.113.7", f"198.51.100.{number}") for number in range(4)]
    assert forged == [200, 200, 429, 429]
    behind = [status("10.0.0.1", f"6.6.6.{number}, 198.51.100.1") for number in range(4)]
    assert behind == [200, 200, 429, 429]
    assert status("10.0.0.1", "198.51.100.2") == 200


async def asked(application: Any, peer: str, claimed: str) -> int:
    """Send one request from ``peer`` with a header, and return the status of the answer."""
    answer: list[Any] = []
    requests = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        # Nothing follows the request: its client waits for the answer.
        return next(requests, None) or await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        answer.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "method": "GET",
        "path": "/api/v1/skills",
        "query_string": b"",
        "scheme": "http",
        "client": (peer, 4711),
        "headers": [(b"host", b"testserver"), (b"x-forwarded-for", claimed.encode())],
    }
    await application(scope, receive, send)
    return int(answer[0]["status"])
