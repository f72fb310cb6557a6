"""A proxy that everything has to go through: nothing goes past it, and it hears no secret that is not its own."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from submissions.source.errors import FetchFailed, HostNotAllowed
from submissions.source.fetching import fetch, repository_url, scratch_folder, source_policy
from submissions.source.lfs.remote_objects import LfsLimits, Missing, fetch_objects
from submissions.source.pinning import pin
from submissions.source.proxies import Proxy
from submissions.source.urls import SourcePolicy
from submissions.verification.packages import files_of_package
from submissions.watching.fetch_address import NotFetched, fetch_address
from tests.git_factory import git, make_repository
from tests.submissions.front_door import skills
from tests.submissions.source.connect_proxy import ConnectProxy, connect_proxy
from tests.submissions.source.https_host import CERTIFICATE, port_of
from tests.submissions.source.lfs.lfs_host import LfsHost, always, lfs_host, pointer
from vskill.configuration import VARIABLES
from vskill.environments import WorkerEnv, build_environment
from vskill.source_variables import with_common_options
from vskill.variables import read_variables

pytestmark = pytest.mark.usefixtures("own_data_folder")

MODEL = b"first model " * 1000
SECRET = "s3cr3t-of-the-corp/+="
PASSWORD = "p@ss:word/of the proxy"


@pytest.fixture
def proxy() -> Iterator[ConnectProxy]:
    with connect_proxy() as running:
        yield running


@pytest.fixture
def host(tmp_path: Path) -> Iterator[LfsHost]:
    (tmp_path / "a").mkdir()
    made = make_repository(tmp_path / "a/skills.git", skills("one", "two"))
    git(made, "config", "uploadpack.allowFilter", "true")
    git(made, "config", "uploadpack.allowAnySHA1InWant", "true")
    with lfs_host(tmp_path) as serving:
        serving.add(MODEL)
        serving.host.answers["/page"] = always(200, b"words")
        yield serving


def environment(host: LfsHost, proxy: ConnectProxy, login: str = "", **policy: Any) -> WorkerEnv:
    policy = {
        "source_private_hosts": ["127.0.0.1", "git.test.example"],
        "source_ca_file": str(CERTIFICATE),
        "source_proxy": proxy.url,
        "source_credentials": {f"127.0.0.1:{host.host.port}": {"kind": "token", "secret": "corp"}},
        **policy,
    }
    secrets = {"corp": "TOKEN", **({"source_proxy": "LOGIN"} if login else {})}
    return build_environment("corp", {"policy": policy, "secrets": secrets}, {"TOKEN": SECRET, "LOGIN": login})


async def files_of(env: WorkerEnv, url: str) -> list[str]:
    async with scratch_folder() as folder:
        wanted = files_of_package("one")
        return [entry.path for entry in (await fetch(env, repository_url(env, url), folder, wanted=wanted)).entries]


async def test_repositories_objects_and_pages_all_go_through_the_proxy(
    host: LfsHost, proxy: ConnectProxy, tmp_path: Path
) -> None:
    login = f"reader:{PASSWORD}"
    proxy.login = f"Basic {base64.b64encode(login.encode()).decode()}"
    env = environment(host, proxy, login)
    policy = source_policy(env)
    assert await files_of(env, f"{host.base}/a/skills") == ["one/SKILL.md"]
    (tmp_path / "o").mkdir()
    limits = LfsLimits(seconds=20)
    url = f"{host.base}/a/skills"
    assert await fetch_objects(url, [pointer(MODEL)], tmp_path / "o", policy=policy, limits=limits) == {}
    found = await fetch_address(f"{host.base}/page", None, policy=policy, may_be_private=True)
    assert not isinstance(found, NotFetched)
    for beginning in (
        "/a/skills/info/refs",
        "/a/skills/git-upload-pack",
        "/a/skills.git/info/lfs",
        "/objects/",
        "/page",
    ):
        assert any(path.startswith(beginning) for path in host.host.requests)
    # Whoever the host saw was the proxy.
    assert host.host.clients <= proxy.ports
    assert set(proxy.targets) == {f"127.0.0.1:{host.host.port}"}
    # What is for the host is said inside of the tunnel.
    assert "\nAuthorization:" not in "".join(proxy.heads)
    assert PASSWORD not in repr(policy) + repr(env)


async def test_listed_hosts_are_reached_without_the_proxy_and_others_are_not(
    host: LfsHost, proxy: ConnectProxy, tmp_path: Path
) -> None:
    proxy.status = 403
    for listed in ("127.0.0.1", f"127.0.0.1:{host.host.port}"):
        env = environment(host, proxy, source_unproxied_hosts=[listed])
        policy = source_policy(env)
        assert await files_of(env, f"{host.base}/a/skills") == ["one/SKILL.md"]
        wanted = [pointer(MODEL)]
        limits = LfsLimits(seconds=20)
        assert await fetch_objects(f"{host.base}/a/skills", wanted, tmp_path, policy=policy, limits=limits) == {}
        assert not isinstance(
            await fetch_address(f"{host.base}/page", None, policy=policy, may_be_private=True), NotFetched
        )
    assert proxy.targets == []
    with pytest.raises(FetchFailed, match="proxy of this registry"):
        await files_of(environment(host, proxy, source_unproxied_hosts=["127.0.0.1:1"]), f"{host.base}/a/skills")
    # What is listed is checked as without a proxy.
    unlisted = environment(host, proxy, source_unproxied_hosts=["127.0.0.1"], source_private_hosts=[])
    with pytest.raises(HostNotAllowed, match="not on the public internet"):
        await pin(f"{host.base}/a/skills", source_policy(unlisted), seconds=5)


async def test_a_name_that_only_the_proxy_knows_is_left_to_it(
    host: LfsHost, proxy: ConnectProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = socket.getaddrinfo

    def getaddrinfo(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "git.test.example":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known(name, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    env = environment(host, proxy)
    assert await files_of(env, f"https://git.test.example:{host.host.port}/a/skills") == ["one/SKILL.md"]
    assert set(proxy.targets) == {f"git.test.example:{host.host.port}"}


@pytest.mark.parametrize("status", [403, 502])
async def test_what_the_proxy_refuses_is_not_fetched_past_it(
    host: LfsHost, proxy: ConnectProxy, tmp_path: Path, status: int
) -> None:
    proxy.status = status
    env = environment(host, proxy)
    with pytest.raises(FetchFailed, match=r"proxy of this registry did not let it through to 127\.0\.0\.1"):
        await files_of(env, f"{host.base}/a/skills")
    missing = await fetch_objects(
        f"{host.base}/a/skills", [pointer(MODEL)], tmp_path, policy=source_policy(env), limits=LfsLimits(seconds=20)
    )
    assert missing == {
        pointer(MODEL).oid: Missing("the proxy of this registry does not let it through", transient=True)
    }
    assert host.host.requests == []


async def test_a_proxy_that_is_away_or_wants_another_login_lets_nothing_go_past_it(
    host: LfsHost, proxy: ConnectProxy
) -> None:
    proxy.login = "Basic another"
    for env in (environment(host, proxy), environment(host, proxy, f"reader:{PASSWORD}")):
        with pytest.raises(FetchFailed, match="proxy of this registry") as caught:
            await files_of(env, f"{host.base}/a/skills")
        assert PASSWORD not in str(caught.value)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = ConnectProxy(port_of(listener))
    with pytest.raises(FetchFailed) as caught:
        await files_of(environment(host, nobody, f"reader:{PASSWORD}"), f"{host.base}/a/skills")
    assert "p%40ss" not in str(caught.value)
    assert host.host.requests == []


async def test_private_places_are_refused_before_the_proxy_is_asked(proxy: ConnectProxy) -> None:
    policy = SourcePolicy(proxy=Proxy(proxy.url))
    for url in ("https://10.0.0.1/a", "https://localhost/a", "https://metadata.internal/a", "https://[::1]/a"):
        with pytest.raises(HostNotAllowed, match="not on the public internet"):
            await pin(url, policy, seconds=5)
    allowed = replace(policy, private_hosts=frozenset({"metadata.internal"}))
    assert (await pin("https://metadata.internal/a", allowed, seconds=5)).addresses == ()
    assert proxy.targets == []


def test_the_variables_name_authority_and_proxy_of_every_environment_that_names_none() -> None:
    given = {
        "VSKILL_SOURCE_CA_FILE": "/etc/ssl/corp.pem",
        "VSKILL_SOURCE_PROXY": "http://proxy.corp.example:3128",
        "VSKILL_SOURCE_PROXY_LOGIN": f"reader:{PASSWORD}",
        "VSKILL_SOURCE_UNPROXIED": "Git.corp.example, db.corp.example",
    }
    settings = read_variables(VARIABLES, given, {})
    values = {name: setting.value for name, setting in settings.items()}
    own = {"policy": {"source_proxy": "http://own.example:1"}}
    declared = {**values["VSKILL_ENVIRONMENTS"], "added": {}, "own": own, "none": {"policy": {"source_proxy": ""}}}
    read = {
        name: source_policy(build_environment(name, options, given))
        for name, options in with_common_options(declared, values).items()
    }
    common = Proxy("http://proxy.corp.example:3128", f"reader:{PASSWORD}")
    assert {name: policy.proxy for name, policy in read.items()} == {
        "default": common,
        "added": common,
        "own": Proxy("http://own.example:1"),
        "none": None,
    }
    assert {policy.unproxied for policy in read.values()} == {frozenset({"git.corp.example", "db.corp.example"})}
    assert {policy.ca_file for policy in read.values()} == {Path("/etc/ssl/corp.pem")}
    assert PASSWORD not in " ".join(setting.shown() for setting in settings.values())
    nothing = {name: setting.value for name, setting in read_variables(VARIABLES, {}, {}).items()}
    assert with_common_options(own_environment := nothing["VSKILL_ENVIRONMENTS"], nothing) == own_environment


@pytest.mark.parametrize(
    ("url", "login", "said"),
    [
        (f"http://reader:{PASSWORD}@proxy:3128", "", "without a user"),
        ("proxy:3128", "", "no address as http://"),
        ("socks5://proxy:1080", "", "no address as http://"),
        ("http://proxy.example.org", "", "with a port"),
        ("http://proxy.example.org:3128", PASSWORD.replace(":", ""), "is not user:password"),
        ("http://proxy.example.org:3128", f"reader:{PASSWORD}\n", "is not user:password"),
    ],
)
def test_a_proxy_that_cannot_be_meant_is_refused_without_repeating_it(url: str, login: str, said: str) -> None:
    secrets = {"source_proxy": "LOGIN"} if login else {}
    with pytest.raises(ImproperlyConfigured, match=said) as caught:
        build_environment("corp", {"policy": {"source_proxy": url}, "secrets": secrets}, {"LOGIN": login})
    assert "word" not in str(caught.value).replace("user:password", "").replace("A user and password", "")
