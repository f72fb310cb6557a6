"""Scanners are asked through the proxy and not past it, but for local ones and those that are listed."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from marketplace.catalog import find_skill_sync, find_version_sync
from submissions.external_scans.dispatch import DispatchReport, run_external_scans
from submissions.external_scans.store import request_scan
from tests.marketplace.factories import publish_example
from tests.submissions.external_scans.scanner import Scanner, scanner, with_scanners
from tests.submissions.source.connect_proxy import ConnectProxy, connect_proxy
from tests.submissions.source.https_host import CERTIFICATE
from vskill.environments import WorkerEnv
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "git.test.example"
LOGIN = "reader:p@ss:word"


@pytest.fixture
def proxy() -> Iterator[ConnectProxy]:
    """Run a proxy that wants a login."""
    with connect_proxy() as running:
        running.login = f"Basic {base64.b64encode(LOGIN.encode()).decode()}"
        yield running


@pytest.fixture(params=["http", "https"])
def listening(request: pytest.FixtureRequest) -> Iterator[Scanner]:
    with scanner(request.param) as one:
        yield one


def by_name(monkeypatch: pytest.MonkeyPatch, one: Scanner, *, known: bool) -> str:
    """Return the address of a scanner by a name, which leads to it here or is known to the proxy alone."""
    look_up = socket.getaddrinfo

    def getaddrinfo(host: str, *arguments: Any, **options: Any) -> Any:
        if host != NAME:
            return look_up(host, *arguments, **options)
        if not known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up("127.0.0.1", *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return one.url.replace("127.0.0.1", NAME)


def sent(env: WorkerEnv, url: str, proxy: ConnectProxy, *unproxied: str) -> DispatchReport:
    """Publish a skill, ask the scanner at ``url`` for it, and return the report of the run that sends it."""
    env = with_scanners(env, one=url)
    policy = replace(
        env.policy, source_proxy=proxy.url, source_unproxied_hosts=unproxied, source_ca_file=str(CERTIFICATE)
    )
    env = replace(env, policy=policy, secrets=MappingProxyType({**env.secrets, "source_proxy": LOGIN}))
    publish_example(env, name="hello-skill")
    skill = find_skill_sync(env, "hello-skill")
    assert skill is not None
    version = find_version_sync(env, skill)
    assert version is not None
    request_scan(env, version, "one", by="test")

    async def main() -> DispatchReport:
        return await run_with_worker_env(env, run_external_scans)

    return async_to_sync(main)()


def test_a_scanner_that_only_the_proxy_reaches_is_asked_through_it(
    env: WorkerEnv, proxy: ConnectProxy, listening: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = by_name(monkeypatch, listening, known=False)
    assert sent(env, url, proxy).taken == 1
    assert [target.rpartition(":")[0] for target in proxy.targets] == [NAME]
    [(headers, _body)] = listening.taken
    assert "Proxy-Authorization" not in headers


def test_a_scanner_is_not_asked_past_a_proxy_that_refuses(
    env: WorkerEnv, proxy: ConnectProxy, listening: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.login = "Basic another"
    url = by_name(monkeypatch, listening, known=True)
    report = sent(env, url, proxy)
    assert (report.taken, listening.taken) == (0, [])
    assert proxy.targets
    assert "p@ss" not in str(report)


@pytest.mark.parametrize("unproxied", [(), (NAME,)])
def test_a_local_scanner_and_a_listed_one_are_asked_without_the_proxy(
    env: WorkerEnv,
    proxy: ConnectProxy,
    listening: Scanner,
    monkeypatch: pytest.MonkeyPatch,
    unproxied: tuple[str, ...],
) -> None:
    named = by_name(monkeypatch, listening, known=True)
    assert sent(env, named if unproxied else listening.url, proxy, *unproxied).taken == 1
    assert proxy.targets == []
    assert len(listening.taken) == 1
