"""The admin's login becomes slow after failures, says so, and never locks its people out."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from tests.vskill.rate_limits.clock import Clock, stop_the_clock
from vskill.rate_limits.failed_logins import Attempt, begin
from vskill.web.logins import COOKIE

pytestmark = pytest.mark.django_db

PASSWORD = "long enough to pass"
STRANGER = "198.51.100.66"


@pytest.fixture(autouse=True)
def root() -> None:
    get_user_model().objects.create_superuser("root", "", PASSWORD)


def attempt(client: Client, password: str = PASSWORD, account: str = "root", address: str = "127.0.0.1") -> int:
    form = {"username": account, "password": password, "next": "/admin/"}
    return int(client.post("/admin/login/", form, REMOTE_ADDR=address).status_code)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return stop_the_clock(monkeypatch)


def strangers_fail(clock: Clock) -> None:
    """Let so many fail at the account, from as many addresses, that everybody has to wait."""
    for number in range(30):
        clock.now += 30
        assert begin(Attempt("root", f"198.51.100.{number}")) == 0


def test_a_right_password_logs_in(client: Client) -> None:
    assert attempt(client) == 302
    assert client.get("/admin/").status_code == 200


def test_after_five_failures_even_the_right_password_waits_and_is_then_taken(client: Client, clock: Clock) -> None:
    assert [attempt(client, "wrong") for _ in range(6)] == [200] * 5 + [429]
    assert attempt(client) == 429
    assert client.get("/admin/").status_code == 302
    clock.now += 1
    assert attempt(client) == 302


def test_the_answer_says_when_to_come_back(client: Client) -> None:
    for _ in range(5):
        attempt(client, "wrong")
    answer = client.post("/admin/login/", {"username": "root", "password": PASSWORD})
    assert answer["Retry-After"] == "1"
    page = answer.content.decode()
    assert "This one was not checked." in page
    assert "1 second" in page


@pytest.mark.parametrize("account", ["root", "nobody"])
def test_an_account_that_is_not_there_is_slowed_down_alike(client: Client, account: str) -> None:
    assert [attempt(client, "wrong", account) for _ in range(7)] == [200] * 5 + [429] * 2


def test_a_stranger_does_not_lock_the_admin_out(client: Client) -> None:
    stranger = Client()
    assert [attempt(stranger, "wrong", address=STRANGER) for _ in range(10)][-1] == 429
    assert attempt(client) == 302


def test_a_browser_that_has_logged_in_before_is_not_stopped_by_others(client: Client, clock: Clock) -> None:
    assert attempt(client) == 302
    del client.cookies["sessionid"]
    strangers_fail(clock)
    assert attempt(Client(), address="203.0.113.8") == 429
    assert COOKIE in client.cookies
    assert attempt(client) == 302


def test_the_mark_of_a_browser_is_of_one_account_and_cannot_be_made_up(client: Client, clock: Clock) -> None:
    get_user_model().objects.create_superuser("other", "", PASSWORD)
    assert attempt(client, account="other") == 302
    strangers_fail(clock)
    assert attempt(client) == 429
    client.cookies[COOKIE] = "root:made:up"
    assert attempt(client) == 429


def test_the_mark_is_sent_to_the_login_alone_and_no_script_reads_it(client: Client) -> None:
    attempt(client)
    cookie = client.cookies[COOKIE]
    assert (cookie["path"], cookie["httponly"], cookie["samesite"]) == ("/admin/login/", True, "Strict")


def test_a_failure_is_logged_with_account_and_address_and_without_the_password(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    attempt(client, "my secret guess", account="ro\u202eot", address=STRANGER)
    [line] = [record.getMessage() for record in caplog.records if record.name == "vskill.web.logins"]
    assert line == "a login as ro\\u{202e}ot from 198.51.100.66 failed"
    assert "my secret guess" not in caplog.text


def test_no_page_of_the_admin_is_a_way_around_it(client: Client) -> None:
    for _ in range(5):
        attempt(client, "wrong")
    form = {"username": "root", "password": PASSWORD, "this_is_the_login_form": "1"}
    for path in ("/admin/", "/admin/auth/user/", "/admin/logout/"):
        client.post(path, form)
        assert client.get("/admin/").status_code == 302
