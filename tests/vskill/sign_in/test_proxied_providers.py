"""The sign-in by a provider that only the proxy of an environment reaches."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import Client, override_settings

from tests.submissions.source.connect_proxy import ConnectProxy, connect_proxy
from tests.vskill.sign_in.oidc_server import CLIENT, SECRET, Provider, oidc_server
from tests.vskill.sign_in.test_providers import BEGIN, DEFAULTS, is_signed_in, led_to
from vskill.sign_in_variables import sign_in_settings

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "login.test.example"
LOGIN = "reader:p@ss:word"


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectProxy]:
    """Run a proxy that wants a login."""
    monkeypatch.setenv("PROXY_LOGIN", LOGIN)
    with connect_proxy() as running:
        running.login = f"Basic {base64.b64encode(LOGIN.encode()).decode()}"
        yield running


@contextmanager
def registry(provider: Provider, proxy: ConnectProxy, *unproxied: str) -> Iterator[None]:
    """Let a registry with this proxy sign people in by this provider."""
    named = {"VSKILL_OIDC_ISSUER": provider.address, "VSKILL_OIDC_ID": CLIENT, "VSKILL_OIDC_SECRET": SECRET}
    policy = {"source_proxy": proxy.url, "source_unproxied_hosts": list(unproxied)}
    options = {"hosts": ["*"], "policy": policy, "secrets": {"source_proxy": "PROXY_LOGIN"}}
    settings: dict[str, Any] = sign_in_settings({**DEFAULTS, **named})
    with override_settings(VSKILL_ENVIRONMENTS={"default": options}, **settings):
        yield


def test_a_provider_is_asked_through_the_proxy(proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is configured here goes before what the account of the server has.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", NAME)
    with oidc_server(NAME) as provider, registry(provider, proxy):
        client = Client()
        client.get(provider.sign_in(led_to(client.post(BEGIN))))
        assert is_signed_in(client)
        assert set(proxy.targets) == {provider.address.removeprefix("http://")}


def leads_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the name of the provider lead to this machine without the proxy too."""
    look_up = socket.getaddrinfo

    def getaddrinfo(host: str, *arguments: Any, **options: Any) -> Any:
        return look_up("127.0.0.1" if host == NAME else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.mark.parametrize("away", [False, True])
def test_a_provider_is_not_asked_past_a_proxy_that_refuses_or_is_away(
    proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, away: bool
) -> None:
    leads_here(monkeypatch)
    proxy.login = "Basic another"
    with oidc_server(NAME) as provider, registry(provider, ConnectProxy(9) if away else proxy):
        answer = Client().post(BEGIN)
    assert answer.status_code == 503
    assert "p%40ss" not in answer.content.decode() + caplog.text
    assert "does not answer" in caplog.text
    assert "does not answer right now" in answer.content.decode()
    assert bool(proxy.targets) is not away


@pytest.mark.parametrize(("name", "unproxied"), [("127.0.0.1", ()), (NAME, (NAME,))])
def test_a_local_provider_and_a_listed_one_are_asked_without_the_proxy(
    proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch, name: str, unproxied: tuple[str, ...]
) -> None:
    leads_here(monkeypatch)
    with oidc_server(name) as provider, registry(provider, proxy, *unproxied):
        client = Client()
        client.get(provider.sign_in(led_to(client.post(BEGIN))))
        assert is_signed_in(client)
    assert proxy.targets == []
