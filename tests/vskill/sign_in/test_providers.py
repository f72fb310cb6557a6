"""The sign-in by a provider outside, a real OpenID Connect server: it counts once, for the browser that began it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client, override_settings

from tests.routes import PLACE, every_route
from tests.vskill.sign_in.oidc_server import CLIENT, SECRET, Provider, oidc_server
from vskill.configuration import VARIABLES
from vskill.environments import WorkerEnv
from vskill.sign_in_variables import sign_in_settings

pytestmark = pytest.mark.django_db(transaction=True)

DEFAULTS = {one.name: one.default for one in VARIABLES}
BEGIN = "/sign-in/oidc/oidc"


@pytest.fixture
def provider(env: WorkerEnv) -> Iterator[Provider]:
    with oidc_server() as found:
        named = {
            "VSKILL_OIDC_ISSUER": found.address,
            "VSKILL_OIDC_ID": CLIENT,
            "VSKILL_OIDC_SECRET": SECRET,
            "VSKILL_OIDC_NAME": "Corp",
        }
        with override_settings(**sign_in_settings({**DEFAULTS, **named})):
            yield found


def led_to(page: Any) -> str:
    """Return the address at the provider to which a page leads, without any script and past no policy."""
    assert page.status_code == 200, page
    found = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', page.content.decode())
    assert found is not None
    return html.unescape(found[1])


def is_signed_in(client: Client) -> bool:
    return bool(client.get("/account").status_code == 200)


def test_a_new_person_gets_an_account_without_a_role_and_the_same_one_the_next_time(provider: Provider) -> None:
    names = get_user_model()._default_manager
    root: Any = names.create_superuser("root", "root@corp.example", "long enough to pass")
    for _time in range(2):
        client = Client()
        assert b"with Corp</button>" in client.get("/sign-in").content
        back = provider.sign_in(led_to(client.post(BEGIN, {"next": "/account"})))
        answer: Any = client.get(back)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/account")
        page = client.get("/account").content.decode()
        assert "grace" in page
        assert "has no role" in page
    # Not that of the account with the same address of mail.
    grace: Any = names.get(username="grace@oidc")
    assert (grace.is_staff, grace.is_superuser, grace.has_usable_password()) == (False, False, False)
    assert set(names.values_list("username", flat=True)) == {root.username, "grace@oidc"}
    # A name says who vouches for it: that of an account here is not to be had.
    provider.person = {"sub": "8", "preferred_username": "root"}
    client = Client()
    client.get(provider.sign_in(led_to(client.post(BEGIN))))
    assert is_signed_in(client)
    assert b"<h1>root</h1>" not in client.get("/account").content


def test_an_answer_counts_once_and_for_the_browser_that_asked_for_it_only(provider: Provider) -> None:
    first = Client()
    back = provider.sign_in(led_to(first.post(BEGIN)))
    stranger = Client()
    refused: Any = stranger.get(back)
    assert "You are not signed in" in refused.content.decode()
    assert not is_signed_in(stranger)
    assert first.get(back).status_code == 302
    assert is_signed_in(first)
    first.post("/sign-out")
    assert "You are not signed in" in first.get(back).content.decode()
    assert not is_signed_in(first)
    # A code that was used, with a new state of the same browser, is refused by the provider.
    again = provider.sign_in(led_to(first.post(BEGIN)))
    provider.codes.clear()
    assert "You are not signed in" in first.get(again).content.decode()
    assert (provider.refused, is_signed_in(first)) == (1, False)


def test_an_account_has_one_way_in_and_none_when_it_is_inactive(provider: Provider) -> None:
    client = Client()
    client.get(provider.sign_in(led_to(client.post(BEGIN))))
    assert is_signed_in(client)
    accounts = get_user_model()._default_manager
    # Somebody at this browser, who would like to come back as this account with one of their own.
    provider.person = {"sub": "8", "preferred_username": "mallory"}
    joined = client.get(provider.sign_in(led_to(client.post(BEGIN, {"process": "connect"}))))
    assert (joined.status_code, "You are not signed in" in joined.content.decode()) == (403, True)
    assert accounts.get().socialaccount_set.count() == 1  # type: ignore[attr-defined]  # django-allauth has no types
    provider.person = {"sub": "7", "preferred_username": "grace"}
    accounts.update(is_active=False)
    again = Client()
    refused = again.get(provider.sign_in(led_to(again.post(BEGIN))))
    assert (refused.status_code, is_signed_in(again)) == (403, False)


@pytest.mark.parametrize("lie", ["audience", "issuer", "denied", "forged state"])
def test_what_the_provider_did_not_say_to_this_registry_signs_nobody_in(provider: Provider, lie: str) -> None:
    client = Client()
    back = provider.sign_in(led_to(client.post(BEGIN)))
    if lie == "denied":
        back = back.replace("code=", "error=access_denied&x=")
    elif lie == "forged state":
        back = back.replace("state=", "state=x")
    else:
        setattr(provider, lie, "another")
    answer = client.get(back)
    assert "You are not signed in" in answer.content.decode()
    assert SECRET not in answer.content.decode()
    assert not is_signed_in(client)
    assert not get_user_model()._default_manager.filter(username="grace@oidc").exists()


def test_a_provider_that_does_not_answer_is_told_and_signs_nobody_in(provider: Provider) -> None:
    named = {
        # Where nothing listens.
        "VSKILL_OIDC_ISSUER": "http://127.0.0.1:9",
        "VSKILL_OIDC_ID": CLIENT,
        "VSKILL_OIDC_SECRET": SECRET,
    }
    client = Client()
    back = provider.sign_in(led_to(client.post(BEGIN)))
    with override_settings(**sign_in_settings({**DEFAULTS, **named})):
        for answer in (client.post(BEGIN), client.get(back)):
            assert answer.status_code == 503
            assert "does not answer right now" in answer.content.decode()
    assert not is_signed_in(client)


def test_without_configuration_no_provider_is_there(env: WorkerEnv, client: Client) -> None:
    steps = [route for route in every_route() if route.startswith(("/sign-in/github", "/sign-in/oidc"))]
    assert len(steps) == 4
    for route in steps:
        path = route.replace(PLACE, "oidc")
        assert {client.get(path).status_code, client.post(path).status_code} == {404, 405}, path
    assert b"with a provider" not in client.get("/sign-in").content
    with override_settings(**sign_in_settings({**DEFAULTS, "VSKILL_GITHUB_ID": "id", "VSKILL_GITHUB_SECRET": "x"})):
        offered = client.get("/sign-in").content
        assert b"with a provider" in offered
        assert b"with GitHub</button>" in offered
        assert led_to(client.post("/sign-in/github")).startswith("https://github.com/login/oauth/authorize?")
        # A page of another origin begins no sign-in.
        assert Client(enforce_csrf_checks=True).post("/sign-in/github").status_code == 403
        assert client.get("/sign-in/github").status_code == 405
        assert b"/sign-in" in client.get("/").content
