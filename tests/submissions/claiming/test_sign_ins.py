"""A sign-in by the identity provider of a git host proves an owner there, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Final

import pytest
from allauth.socialaccount.models import SocialAccount
from django.core.checks import run_checks
from django.test import Client, override_settings
from django.utils import timezone

from marketplace.models import PublisherClaim
from marketplace.ownership.claims import Proof, grant, owner_claim
from tests.submissions.claiming.handing import PAGE, account
from tests.vskill.sign_in.oidc_server import CLIENT, SECRET, Provider, oidc_server
from tests.vskill.sign_in.test_providers import BEGIN, DEFAULTS, led_to
from vskill.environments import WorkerEnv
from vskill.sign_in_variables import sign_in_settings

pytestmark = pytest.mark.django_db(transaction=True)

HOST: Final = "git.corp.example"
NAMED: Final = {"VSKILL_OIDC_GIT_HOST": HOST, "VSKILL_OIDC_GIT_CLAIM": "preferred_username"}
Configure = Callable[..., None]


@pytest.fixture
def provider(env: WorkerEnv) -> Iterator[Provider]:
    """Run an identity provider."""
    with oidc_server() as found:
        yield found


def configured(issuer: str, **named: str) -> AbstractContextManager[Any]:
    values = {"VSKILL_OIDC_ISSUER": issuer, "VSKILL_OIDC_ID": CLIENT, "VSKILL_OIDC_SECRET": SECRET, **named}
    return override_settings(**sign_in_settings({**DEFAULTS, **values}))


def signed_in(provider: Provider) -> Client:
    """Return a browser whose person has just signed in at the provider."""
    client = Client()
    assert client.get(provider.sign_in(led_to(client.post(BEGIN)))).status_code == 302
    return client


def claimed(client: Client, owner: str) -> bool:
    """Claim an owner by the sign-in, and return whether that was possible, as the page must say as well."""
    offered = f"Claim {owner}<" in client.get(PAGE).content.decode()
    status = client.post(PAGE, {"sign_in": owner}).status_code
    assert status == (302 if offered else 422)
    return offered


def test_a_sign_in_proves_the_owner_of_that_name_at_the_host(env: WorkerEnv, provider: Provider) -> None:
    with configured(provider.address, **NAMED):
        client = signed_in(provider)
        assert claimed(client, f"{HOST}/grace")
        done = owner_claim(env, f"{HOST}/grace")
        assert done is not None
        assert (done.proof, done.account_name, done.handle) == (Proof.SIGN_IN, "grace@oidc", f"grace.{HOST}")
        assert done.evidence == f"signed in as {HOST}/grace"
        assert "Claim git" not in client.get(PAGE).content.decode()
        for other in (f"{HOST}/root", "github.com/grace", "gitlab.com/grace", "grace", ""):
            assert not claimed(client, other), other
        assert PublisherClaim.objects.count() == 1


def test_who_else_signs_in_claims_nothing_of_it(env: WorkerEnv, provider: Provider) -> None:
    with configured(provider.address, **NAMED):
        provider.person = {"sub": "8", "preferred_username": "mallory"}
        assert not claimed(signed_in(provider), f"{HOST}/grace")
        stranger = Client()
        assert stranger.post(PAGE, {"sign_in": f"{HOST}/grace"})["Location"].startswith("/sign-in")
        local = Client()
        local.force_login(account("grace"))
        assert not claimed(local, f"{HOST}/grace")
        # Of a publisher that somebody has, a sign-in takes nothing.
        grant(env, account("ada"), f"{HOST}/mallory", "mallory", actor="op", reason="known to us")
        again = signed_in(provider)
        assert again.post(PAGE, {"sign_in": f"{HOST}/mallory"}).status_code == 422
        taken = owner_claim(env, f"{HOST}/mallory")
        assert taken is not None
        assert taken.account_name == "ada"


@pytest.mark.parametrize(
    "named",
    [
        pytest.param({}, id="not named"),
        pytest.param({"VSKILL_OIDC_GIT_HOST": HOST}, id="without the claim"),
        pytest.param({"VSKILL_OIDC_GIT_CLAIM": "preferred_username"}, id="without the host"),
        pytest.param({**NAMED, "VSKILL_OIDC_GIT_CLAIM": "email"}, id="by an address of mail"),
        pytest.param({**NAMED, "VSKILL_OIDC_GIT_CLAIM": "name"}, id="by a name for show"),
        pytest.param({**NAMED, "VSKILL_OIDC_GIT_CLAIM": "nickname"}, id="by a claim that is not sent"),
        pytest.param({**NAMED, "VSKILL_OIDC_GIT_HOST": "github.com"}, id="for GitHub"),
        pytest.param({**NAMED, "VSKILL_OIDC_GIT_HOST": "www.github.com"}, id="for GitHub by another name"),
        pytest.param({**NAMED, "VSKILL_OIDC_GIT_HOST": "gitlab.com"}, id="for a public host that it is not"),
        pytest.param({**NAMED, "VSKILL_OIDC_GIT_HOST": "local"}, id="for this machine"),
        pytest.param({**NAMED, "VSKILL_OIDC_GIT_HOST": "account"}, id="for accounts of the registry"),
        pytest.param({**NAMED, "VSKILL_OIDC_GIT_HOST": f"https://{HOST}"}, id="an address for a host"),
    ],
)
def test_without_a_host_that_the_operator_named_rightly_it_proves_nothing(
    provider: Provider, named: dict[str, str]
) -> None:
    provider.person |= {"name": "grace", "email": "grace"}
    with configured(provider.address, **named):
        client = signed_in(provider)
        for owner in (f"{HOST}/grace", "github.com/grace", "gitlab.com/grace", "local/grace", "account/grace"):
            assert not claimed(client, owner), owner
        told = [one.id for one in run_checks() if one.id == "submissions.E012"]
        assert bool(told) == (named not in ({}, {**NAMED, "VSKILL_OIDC_GIT_CLAIM": "nickname"}))
    assert not PublisherClaim.objects.exists()


@pytest.mark.parametrize(
    "name",
    [
        *(
            "grace@corp.example",
            "gr\N{CYRILLIC SMALL LETTER A}ce",
            "grace ",
            "",
            ".",
            "..",
            "a/b",
            "%67race",
            "x" * 300,
        ),
        *("gr\N{ZERO WIDTH SPACE}ace", "gra\nce", "\N{FULLWIDTH LATIN SMALL LETTER G}race", "-"),
        # Folders in which hosts keep the repositories of everybody.
        *("scm", "git", "p", "r", "cgit", "Pub", "snippets"),
        *(7, True, ["grace"], {"name": "grace"}, None),
    ],
    ids=repr,
)
def test_a_name_that_is_no_owner_proves_nothing(env: WorkerEnv, provider: Provider, name: Any) -> None:
    provider.person = {"sub": "7", "preferred_username": "anybody", "login": name}
    with configured(provider.address, VSKILL_OIDC_GIT_HOST=HOST, VSKILL_OIDC_GIT_CLAIM="login"):
        client = signed_in(provider)
        assert "Claim git" not in client.get(PAGE).content.decode()
        for owner in (f"{HOST}/{name}", f"{HOST}/grace"):
            assert client.post(PAGE, {"sign_in": owner}).status_code == 422
    assert not PublisherClaim.objects.exists()


def test_capitals_count_where_the_host_has_them_count(provider: Provider) -> None:
    provider.person = {"sub": "7", "preferred_username": "Grace"}
    with configured(provider.address, **NAMED):
        client = signed_in(provider)
        assert not claimed(client, f"{HOST}/grace")
        assert claimed(client, f"{HOST}/Grace")


@pytest.mark.parametrize(
    "userinfo",
    [
        pytest.param({"sub": "7", "preferred_username": "root"}, id="another name"),
        pytest.param({"sub": "8", "preferred_username": "grace"}, id="another person"),
    ],
)
def test_two_answers_that_do_not_agree_prove_nothing(provider: Provider, userinfo: dict[str, str]) -> None:
    provider.userinfo = userinfo
    with configured(provider.address, **NAMED):
        client = signed_in(provider)
        for owner in (f"{HOST}/grace", f"{HOST}/root"):
            assert not claimed(client, owner)


def test_a_sign_in_of_long_ago_or_of_another_provider_proves_nothing(provider: Provider) -> None:
    with configured(provider.address, **NAMED):
        client = signed_in(provider)
        SocialAccount.objects.update(last_login=timezone.now() - timedelta(minutes=16))
        assert not claimed(client, f"{HOST}/grace")
        SocialAccount.objects.update(last_login=timezone.now())
        with configured("https://login.corp.example", **NAMED):
            assert not claimed(client, f"{HOST}/grace")
        assert claimed(client, f"{HOST}/grace")


def test_the_check_lets_a_host_pass_whose_own_provider_it_is() -> None:
    for issuer, host in (("https://gitlab.com", "gitlab.com"), ("https://login.corp.example", f"{HOST}:8443")):
        with configured(issuer, **{**NAMED, "VSKILL_OIDC_GIT_HOST": host}):
            assert not [one for one in run_checks() if one.id == "submissions.E012"]
