"""A program that shows a code is let in by a person, once, or not at all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db.models import F
from django.test import Client
from django.utils import timezone

from vskill.access_tokens import device_logins
from vskill.access_tokens.models import AccessToken, DeviceLogin
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import MOST_ACTIVE, make_token
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

CODE, TOKEN, PAGE = "/api/cli/device/code", "/api/cli/device/token", "/device"


@pytest.fixture
def ada() -> Any:
    return get_user_model()._default_manager.create_user("ada")


@pytest.fixture
def browser(client: Client, ada: Any) -> Client:
    """Return the browser of somebody who is signed in."""
    client.force_login(ada)
    return client


def post(address: str, body: Any) -> Any:
    return Client().post(address, body, "application/json")


def begun(label: str = "CLI device login", scope: str = "read write") -> dict[str, Any]:
    answer = post(CODE, {"scope": scope, "label": label, "site_url": "http://elsewhere.example"})
    assert answer.status_code == 200
    body: dict[str, Any] = answer.json()
    return body


def polled(device_code: str) -> tuple[int, str]:
    """Ask as a program does that waits long enough between two questions."""
    DeviceLogin.objects.update(polled_at=F("polled_at") - timedelta(seconds=device_logins.INTERVAL))
    answer = post(TOKEN, {"device_code": device_code, "grant_type": "urn:ietf:params:oauth:grant-type:device_code"})
    body = answer.json()
    return answer.status_code, body.get("error") or body["access_token"]


def test_a_person_lets_a_program_in_once(env: WorkerEnv, browser: Client) -> None:
    started = begun("laptop of ada")
    assert started["verification_uri"].endswith(PAGE)
    assert polled(started["device_code"]) == (400, "authorization_pending")
    # At once again is too fast.
    assert post(TOKEN, {"device_code": started["device_code"]}).json()["error"] == "slow_down"

    typed = started["user_code"].replace("-", " ").lower()
    shown = browser.post(PAGE, {"code": typed}).content.decode()
    for text in (started["user_code"], "laptop of ada", "work as", "upload skills", "submit repositories", "Let it in"):
        assert text in shown
    assert "operators do" not in shown
    assert "let in" in browser.post(PAGE, {"code": typed, "decision": "approve"}).content.decode()
    # It was decided, so nobody decides it again.
    assert browser.post(PAGE, {"code": typed, "decision": "refuse"}).status_code == 400

    assert AccessToken.objects.count() == 0
    status, token = polled(started["device_code"])
    assert status == 200
    row = AccessToken.objects.get()
    assert (row.user.get_username(), row.name, row.scopes) == ("ada", "laptop of ada", "read submit publish")
    whose = Client().get("/api/v1/whoami", headers={"Authorization": f"Bearer {token}"})
    assert whose.json()["user"]["handle"] == "ada"
    assert polled(started["device_code"]) == (400, "expired_token")
    assert (AccessToken.objects.count(), DeviceLogin.objects.count()) == (1, 0)


def test_a_login_that_is_refused_or_too_old_gives_nothing(env: WorkerEnv, browser: Client, ada: Any) -> None:
    refused, old = begun(), begun()
    browser.post(PAGE, {"code": refused["user_code"], "decision": "refuse"})
    assert polled(refused["device_code"]) == (400, "access_denied")
    browser.post(PAGE, {"code": old["user_code"], "decision": "approve"})
    DeviceLogin.objects.update(expires_at=timezone.now())
    assert polled(old["device_code"]) == (400, "expired_token")
    assert polled("never given") == (400, "expired_token")
    assert b"No program waits" in browser.post(PAGE, {"code": begun()["user_code"][:-1]}).content

    # An approval that cannot become a token leaves everything as it was.
    late = begun()
    browser.post(PAGE, {"code": late["user_code"], "decision": "approve"})
    for _number in range(MOST_ACTIVE):
        make_token(env, ada, name="x", scopes=[Scope.READ])
    assert polled(late["device_code"]) == (400, "token_not_made")
    assert AccessToken.objects.count() == MOST_ACTIVE
    AccessToken.objects.first().delete()  # type: ignore[union-attr]  # there are some
    assert polled(late["device_code"])[0] == 200

    # What is long over is deleted with the next login.
    DeviceLogin.objects.update(expires_at=timezone.now() - timedelta(hours=2))
    begun()
    assert DeviceLogin.objects.count() == 1


def test_only_a_person_lets_a_program_in(env: WorkerEnv, ada: Any, client: Client) -> None:
    started = begun()
    sent = {"code": started["user_code"], "decision": "approve"}
    assert b"Sign in first" in client.get(PAGE).content
    assert client.post(PAGE, sent).status_code == 403
    # A token would make one that may do more, and lives longer.
    token = make_token(env, ada, name="x", scopes=[Scope.READ])[1]
    bearer = {"Authorization": f"Bearer {token}"}
    client.force_login(ada)
    assert client.post(PAGE, sent, headers=bearer).status_code == 403
    # A page of another origin has no token of the form.
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ada)
    assert strict.post(PAGE, sent).status_code == 403
    assert polled(started["device_code"]) == (400, "authorization_pending")


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ("nonsense", 400, "invalid_request"),
        ("[]", 400, "invalid_request"),
        ("{" + " " * 20_000 + "}", 413, "too_large"),
        ('{"scope": "read root"}', 400, "invalid_scope"),
    ],
    ids=["no json", "no object", "too long", "no scope"],
)
def test_what_cannot_be_meant_is_refused_in_words(body: str, status: int, error: str) -> None:
    answer = post(CODE, body)
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.json()["error_description"]
    assert Client().get(CODE).status_code == 405


def test_too_many_wait_at_once_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_logins, "MOST_WAITING", 1)
    begun()
    answer = post(CODE, {"label": "\0\ud800", "scope": None})
    assert (answer.status_code, answer.json()["error"]) == (503, "slow_down")
