"""Repositories over ssh: with the operator's key and from the pinned host alone, whatever else this machine has."""

from __future__ import annotations

import base64
import random
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from submissions.source.errors import (
    FetchFailed,
    HostNotAllowed,
    InvalidRepositoryURL,
    RepositoryNotFound,
    RepositoryRefused,
)
from submissions.source.fetching import fetch, repository_url, scratch_folder
from submissions.source.snapshots import Asked, shared_snapshot
from submissions.source.ssh import over_https
from submissions.source.wanted import Wanted
from submissions.verification.packages import files_of_package
from tests.git_factory import git, make_repository
from tests.submissions.front_door import skills
from tests.submissions.source.connect_proxy import ConnectProxy, connect_proxy
from tests.submissions.source.connect_proxy import over_https as proxy_over_https
from tests.submissions.source.https_host import CERTIFICATE
from tests.submissions.source.ssh_host import SSHD, SshHost, ssh_host
from vskill.environments import WorkerEnv, build_environment
from vskill.source_ssh_keys import SourceSshKey

pytestmark = pytest.mark.usefixtures("own_data_folder")

NAME = "git.test.example"
PROXY_LOGIN = "reader:p@ss word/of %h $(proxy)"
needs_sshd = pytest.mark.skipif(SSHD is None, reason="sshd is not installed")


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve the name of the test in this process; ssh cannot resolve it."""
    _reachable(monkeypatch)


def _reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    known = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *arguments: Any, **options: Any) -> Any:
        if host == NAME:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        return known(host, port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SshHost]:
    (tmp_path / "acme").mkdir()
    made = make_repository(tmp_path / "acme/skills.git", skills("one", "two"))
    git(made, "config", "uploadpack.allowFilter", "true")
    git(made, "config", "uploadpack.allowAnySHA1InWant", "true")
    with ssh_host(tmp_path, tmp_path / "ssh") as serving:
        yield serving


def environment(
    host: SshHost, *, key: str = "deploy", pinned: str = "host", place: str = f"{NAME}/acme", **policy: Any
) -> WorkerEnv:
    options = {
        "key_file": str(host.folder / key),
        "known_hosts_file": str(host.known_hosts(place.partition("/")[0], pinned)),
        "user": host.user,
        "port": host.port,
    }
    given = {"source_private_hosts": [NAME], "source_ssh_keys": {place: options}, **policy}
    secrets = {"source_proxy": "LOGIN"} if "source_proxy" in policy else {}
    return build_environment("corp", {"policy": given, "secrets": secrets}, {"LOGIN": PROXY_LOGIN})


async def files_of(env: WorkerEnv, url: str) -> list[str]:
    async with scratch_folder() as folder:
        return [entry.path for entry in (await fetch(env, repository_url(env, url), folder)).entries]


@needs_sshd
async def test_a_repository_is_one_however_its_address_is_written_and_is_read_over_ssh(host: SshHost) -> None:
    env = environment(host)
    seen: list[str] = []
    host.during = lambda: seen.extend(
        path.read_text("utf-8", "replace") for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()
    )
    for url in (f"ssh://{host.user}@{NAME}:{host.port}/acme/skills.git", f"https://{NAME}/acme/skills"):
        assert repository_url(env, url).url == f"https://{NAME}/acme/skills"
        assert await files_of(env, url) == ["one/SKILL.md", "two/SKILL.md"]
    assert {command.split("'")[1] for command in host.commands()} <= {"/acme/skills", "/acme/skills.git"}
    [line, *_] = [one.split("\0") for one in seen if one.startswith("ssh\0")]
    assert line[1:3] == ["-F", "none"]
    assert {"StrictHostKeyChecking=yes", "IdentitiesOnly=yes", "IdentityAgent=none", "BatchMode=yes"} <= set(line)
    assert "HostName=127.0.0.1" in line


@needs_sshd
async def test_a_shared_snapshot_is_completed_over_ssh(host: SshHost, tmp_path: Path) -> None:
    env = environment(host)
    repository = repository_url(env, f"https://{NAME}/acme/skills")
    sha = git(tmp_path / "acme/skills.git", "rev-parse", "HEAD").decode().strip()
    for name in ("one", "two"):
        wanted = files_of_package(name)

        async def also(wanted: Wanted = wanted) -> Wanted:
            return wanted

        async with shared_snapshot(env, Asked(repository, sha, wanted, also, find_ref=True)) as snapshot:
            assert {entry.path for entry in snapshot.entries if entry.size} == {f"{name}/SKILL.md"}
    key = (host.folder / "deploy").read_text("ascii")
    for path in (tmp_path / "data").rglob("*"):
        assert not path.is_file() or key.split("\n")[2].encode() not in path.read_bytes()


@needs_sshd
async def test_a_host_with_another_key_than_the_pinned_one_is_told_nothing(host: SshHost) -> None:
    with pytest.raises(FetchFailed, match=rf"The key that {NAME} shows is not the one"):
        await files_of(environment(host, pinned="other"), f"https://{NAME}/acme/skills")
    assert host.connections
    assert host.commands() == []


@needs_sshd
@pytest.mark.parametrize("proxied", [False, True])
async def test_a_host_without_a_pinned_key_is_told_nothing_and_the_operator_is_told_what_is_missing(
    host: SshHost, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture, proxied: bool
) -> None:
    policy = {"source_proxy": request.getfixturevalue("proxy").url} if proxied else {}
    env = environment(host, **policy)
    host.known_hosts(NAME).write_text("", "ascii")
    with pytest.raises(FetchFailed, match=rf"no key was pinned by which it would know {NAME}"):
        await files_of(env, f"https://{NAME}/acme/skills")
    assert host.commands() == []
    assert f"known hosts has no key that {NAME} shows" in caplog.text


@needs_sshd
async def test_a_key_that_the_host_does_not_know_is_refused_and_is_no_proof_that_the_repository_is_gone(
    host: SshHost, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(RepositoryRefused, match="does not let this registry in") as caught:
        await files_of(environment(host, key="stranger"), f"https://{NAME}/acme/skills")
    assert not caught.value.transient
    assert f"{NAME} refused the credential" in caplog.text
    with pytest.raises(RepositoryNotFound, match="not shown to this registry"):
        await files_of(environment(host), f"https://{NAME}/acme/absent")


@needs_sshd
async def test_no_one_is_asked_over_ssh_who_is_private_or_has_no_key(host: SshHost) -> None:
    with pytest.raises(HostNotAllowed, match="not on the public internet"):
        await files_of(environment(host, source_private_hosts=[]), f"https://{NAME}/acme/skills")
    unlisted = environment(host, source_private_hosts=[], source_proxy="http://127.0.0.1:9")
    with pytest.raises(HostNotAllowed, match="not on the public internet"):
        await files_of(unlisted, f"https://{NAME}/acme/skills")
    nobody = replace(environment(host), policy=replace(environment(host).policy, source_ssh_keys=()))
    with pytest.raises(InvalidRepositoryURL, match=r"neither used nor stored|port of ssh"):
        await files_of(nobody, f"ssh://{host.user}@{NAME}:{host.port}/acme/skills")
    with pytest.raises(FetchFailed):
        await files_of(environment(host), f"https://{NAME}:1/acme/skills")
    assert host.connections == 0


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectProxy]:
    """Run a proxy that wants a login; the name of the test is known to it alone."""
    known = socket.getaddrinfo

    def getaddrinfo(host: str, *arguments: Any, **options: Any) -> Any:
        if host == NAME:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with connect_proxy() as running:
        running.login = f"Basic {base64.b64encode(PROXY_LOGIN.encode()).decode()}"
        yield running


@needs_sshd
@pytest.mark.parametrize("secure", [False, True])
async def test_a_repository_is_read_over_ssh_through_the_proxy_and_its_login_is_in_no_argument(
    host: SshHost, proxy: ConnectProxy, secure: bool
) -> None:
    make_repository(host.folder.parent / "acme/large.git", {"large.bin": random.Random(1).randbytes(5_000_000)})
    seen: list[str] = []
    host.during = lambda: seen.extend(
        path.read_text("utf-8", "replace") for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()
    )
    async with AsyncExitStack() as stack:
        if secure:
            await stack.enter_async_context(proxy_over_https(proxy))
        env = environment(host, source_proxy=proxy.url, source_ca_file=str(CERTIFICATE))
        assert await files_of(env, f"https://{NAME}/acme/large") == ["large.bin"]
    assert set(proxy.targets) == {f"{NAME}:{host.port}"}
    assert len(proxy.ports) == host.connections > 0
    assert any("ssh_tunnel.py" in line for line in seen)
    assert "(proxy)" not in " ".join(seen)


@needs_sshd
async def test_the_key_of_the_host_is_checked_behind_the_proxy(host: SshHost, proxy: ConnectProxy) -> None:
    with pytest.raises(FetchFailed, match=rf"The key that {NAME} shows is not the one"):
        await files_of(environment(host, pinned="other", source_proxy=proxy.url), f"https://{NAME}/acme/skills")
    assert host.connections
    assert host.commands() == []


@needs_sshd
@pytest.mark.parametrize("trouble", ["refuses", "wants another login", "has another certificate", "is away"])
async def test_ssh_does_not_go_past_a_proxy_that_lets_nothing_through(
    host: SshHost, proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    # Reachable without the proxy, as far as this process can tell.
    _reachable(monkeypatch)
    async with AsyncExitStack() as stack:
        if trouble == "refuses":
            proxy.status = 403
        elif trouble == "wants another login":
            proxy.login = "Basic another"
        elif trouble == "has another certificate":
            await stack.enter_async_context(proxy_over_https(proxy))
        url = "http://127.0.0.1:9" if trouble == "is away" else proxy.url
        with pytest.raises(FetchFailed, match=rf"proxy of this registry did not let it through to {NAME}") as caught:
            await files_of(environment(host, source_proxy=url), f"https://{NAME}/acme/skills")
    assert "(proxy)" not in str(caught.value)
    assert host.connections == 0
    assert proxy.ports == set()


@needs_sshd
async def test_an_ssh_server_with_another_name_than_its_host_is_reached_by_a_rewrite(
    host: SshHost, proxy: ConnectProxy
) -> None:
    rewrites = [[f"https://{NAME}/acme/", "https://ssh.test.example/acme/"]]
    env = environment(host, place="ssh.test.example/acme", source_proxy=proxy.url, source_rewrites=rewrites)
    assert await files_of(env, f"git@{NAME}:acme/skills.git") == ["one/SKILL.md", "two/SKILL.md"]
    assert set(proxy.targets) == {f"ssh.test.example:{host.port}"}


@needs_sshd
async def test_a_listed_host_is_reached_over_ssh_without_the_proxy(
    host: SshHost, proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    _reachable(monkeypatch)
    env = environment(host, source_proxy=proxy.url, source_unproxied_hosts=[f"{NAME}:{host.port}"])
    assert await files_of(env, f"https://{NAME}/acme/skills") == ["one/SKILL.md", "two/SKILL.md"]
    assert proxy.targets == []


def test_the_address_of_what_is_read_over_ssh_is_that_of_https_for_git_lfs() -> None:
    assert over_https(f"ssh://git@{NAME}:2222/acme/skills.git") == f"https://{NAME}/acme/skills.git"
    assert over_https(f"https://{NAME}:8443/a/b") == f"https://{NAME}:8443/a/b"


FILES: dict[str, Any] = {"key_file": "/etc/vskill/deploy", "known_hosts_file": "/etc/vskill/known_hosts"}


def test_keys_are_read_with_their_places() -> None:
    given = {"GIT.corp.example/team/": FILES, "github.com/acme/skills": {**FILES, "user": "org-1", "port": 443}}
    env = build_environment("one", {"policy": {"source_ssh_keys": given}}, {})
    assert env.policy.source_ssh_keys == (
        SourceSshKey("git.corp.example/team", **FILES),
        SourceSshKey("github.com/acme/skills", **FILES, user="org-1", port=443),
    )


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["git.example"], "maps a host"),
        ({"ssh://git@git.example": FILES}, "has a key that is no host"),
        ({"git.example:2222": FILES}, "has a key that is no host"),
        ({"-oProxyCommand=x": FILES}, "has a key that is no host"),
        ({"git.example": "-----BEGIN OPENSSH PRIVATE KEY-----"}, "something else than an object of"),
        ({"git.example": {**FILES, "key": "-----BEGIN OPENSSH PRIVATE KEY-----"}}, "something else than an object of"),
        (
            {"git.example": {**FILES, "key_file": "-----BEGIN OPENSSH PRIVATE KEY-----"}},
            "no 'key_file' with an absolute",
        ),
        ({"git.example": {**FILES, "key_file": "deploy"}}, "no 'key_file' with an absolute"),
        ({"git.example": {**FILES, "key_file": "/a b"}}, "no 'key_file' with an absolute"),
        ({"git.example": {**FILES, "known_hosts_file": "/a/%h"}}, "no 'known_hosts_file'"),
        ({"git.example": {"key_file": "/a"}}, "no 'known_hosts_file'"),
        ({"git.example": {**FILES, "user": "-oProxyCommand=x"}}, "a 'user' that is none"),
        ({"git.example": {**FILES, "port": "22"}}, "a 'port' that is no number"),
    ],
)
def test_a_key_that_cannot_be_meant_is_refused_without_repeating_it(keys: Any, said: str) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        build_environment("one", {"policy": {"source_ssh_keys": keys}}, {})
    assert said in str(caught.value)
    assert "PRIVATE" not in str(caught.value)
