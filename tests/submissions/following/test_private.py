"""A private repository is followed with its login, through the proxy that everything has to go through."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from marketplace.following import FollowState
from marketplace.models import FollowedEntry, HistoryEvent
from submissions.following.pace import REQUESTS_OF_A_LOOK
from submissions.source.logins import Login
from tests.git_factory import commit, make_repository
from tests.submissions.following.followed import again, begin, kept, poll, submissions_of
from tests.submissions.front_door import skills
from tests.submissions.pipeline.test_private import command_lines
from tests.submissions.source.connect_proxy import ConnectProxy, connect_proxy
from tests.submissions.source.https_host import CERTIFICATE, HttpsHost, https_host
from vskill.environments import WorkerEnv
from vskill.source_credentials import SourceCredential

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_data_folder")]

SECRET = "s3cr3t-of-the-corp/+="
LOGIN = Login("", "x-access-token", SECRET)


@pytest.fixture
def proxy() -> Iterator[ConnectProxy]:
    with connect_proxy() as running:
        yield running


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HttpsHost]:
    (tmp_path / "acme").mkdir()
    make_repository(tmp_path / "acme/skills.git", skills("internal-notes"))
    with https_host(tmp_path) as serving:
        serving.logins["/acme/"] = LOGIN.header
        yield serving


@pytest.fixture
def inside(env: WorkerEnv, host: HttpsHost, proxy: ConnectProxy) -> WorkerEnv:
    """Return the environment with a credential for one owner on the host, and nothing but the proxy to reach it."""
    policy = replace(
        env.policy,
        source_private_hosts=("127.0.0.1",),
        source_ca_file=str(CERTIFICATE),
        source_proxy=proxy.url,
        source_credentials=(SourceCredential(f"127.0.0.1:{host.port}/acme", "token", LOGIN.user, "corp"),),
    )
    return replace(env, policy=policy, secrets=MappingProxyType({"corp": SECRET}))


def test_a_look_sends_the_login_to_its_host_alone_through_the_proxy_and_no_process_shows_it(
    inside: WorkerEnv, host: HttpsHost, proxy: ConnectProxy, tmp_path: Path
) -> None:
    shown: list[str] = []
    host.during = lambda: shown.append(command_lines())
    url = begin(inside, f"https://127.0.0.1:{host.port}/acme/skills")
    assert (poll(inside).submitted, [name for name, _, _ in submissions_of(inside)]) == (1, ["internal-notes"])
    host.requests.clear()
    assert again(inside, url).failed == 0
    # The login is sent at once, so a private repository costs no more than another one.
    assert len(host.requests) == REQUESTS_OF_A_LOOK
    new = commit(tmp_path / "acme/skills.git", {"README.md": "more"})
    again(inside, url)
    assert kept(inside, url).tips == {"HEAD": new}
    assert {sent for _, sent in host.sent} == {LOGIN.header}
    assert host.clients <= proxy.ports
    assert set(proxy.targets) == {f"127.0.0.1:{host.port}"}
    assert "\nAuthorization:" not in "".join(proxy.heads)
    assert any("ls-remote" in words for words in shown)
    assert not any(LOGIN.repeated_in(words) for words in shown)


def test_a_credential_that_ends_and_a_proxy_that_is_away_say_nothing_of_the_repository(
    inside: WorkerEnv, host: HttpsHost, proxy: ConnectProxy, caplog: pytest.LogCaptureFixture
) -> None:
    url = begin(inside, f"https://127.0.0.1:{host.port}/acme/skills")
    poll(inside)
    tips = kept(inside, url).tips
    with caplog.at_level(logging.DEBUG):
        expired = replace(inside, secrets=MappingProxyType({"corp": "expired-secret"}))
        assert again(expired, url).failed == 1
        refused = kept(inside, url)
        proxy.status = 503
        again(inside, url)
    away = kept(inside, url)
    for one, says in ((refused, "does not let this registry in"), (away, "proxy")):
        assert (one.state, one.tips, one.told) == (FollowState.UNREACHABLE, tips, ())
        assert says in one.reason
    assert f"refused the credential for 127.0.0.1:{host.port}" in caplog.text
    values = "".join(FollowedEntry.objects.values_list("value", flat=True))
    for secret in (SECRET, "expired-secret"):
        assert not Login("", "x-access-token", secret).repeated_in(caplog.text + values + refused.reason + away.reason)
    assert list(HistoryEvent.objects.values_list("action", flat=True)) == ["followed"]
    proxy.status = 200
    assert again(inside, url).failed == 0
    assert kept(inside, url).state is FollowState.FOLLOWING
