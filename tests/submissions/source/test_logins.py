"""Repositories that ask for sign-in: who is told the secret, and who is not."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from submissions.source.errors import (
    FetchFailed,
    InvalidRepositoryURL,
    RepositoryMoved,
    RepositoryNotFound,
    RepositoryRefused,
)
from submissions.source.fetching import fetch, repository_url, scratch_folder
from submissions.source.git import Snapshot
from submissions.source.logins import Login, login_for
from submissions.source.snapshots import Asked, shared_snapshot
from submissions.source.urls import SourcePolicy, normalise_repository_url
from submissions.source.wanted import Wanted
from submissions.verification.packages import files_of_package
from tests.git_factory import commit, git, make_repository
from tests.submissions.front_door import skills
from tests.submissions.source.https_host import CERTIFICATE, HttpsHost, https_host, port_of
from tests.submissions.source.lfs.lfs_host import always, send
from vskill.environments import WorkerEnv, build_environment

pytestmark = pytest.mark.usefixtures("own_data_folder")

SECRET = "s3cr3t-of-the-corp/+="
ACME = Login("git.example", "x-access-token", SECRET)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HttpsHost]:
    """Serve two owners, of whom acme asks for the token."""
    for owner in ("acme", "other"):
        (tmp_path / owner).mkdir()
        made = make_repository(tmp_path / owner / "skills.git", skills("one", "two"))
        git(made, "config", "uploadpack.allowFilter", "true")
        git(made, "config", "uploadpack.allowAnySHA1InWant", "true")
    with https_host(tmp_path) as serving:
        serving.logins["/acme/"] = ACME.header
        yield serving


def environment(host: HttpsHost, place: str = "", *, secret: str = SECRET, **credential: str) -> WorkerEnv:
    """Return an environment with a token for a place on the host, the whole host by default, or without one."""
    options = {"kind": "token", "secret": "corp", **credential}
    policy = {
        "source_private_hosts": ["127.0.0.1"],
        "source_ca_file": str(CERTIFICATE),
        "source_credentials": {f"127.0.0.1:{host.port}{place}": options} if secret else {},
    }
    return build_environment("corp", {"policy": policy, "secrets": {"corp": "TOKEN"}}, {"TOKEN": secret})


async def files_of(
    env: WorkerEnv, host: HttpsHost, path: str = "/acme/skills", wanted: Wanted | None = None
) -> list[str]:
    async with scratch_folder() as folder:
        url = repository_url(env, f"https://127.0.0.1:{host.port}{path}")
        return [entry.path for entry in (await fetch(env, url, folder, wanted=wanted)).entries]


def told(host: HttpsHost) -> set[str]:
    return {path.split("/")[1] for path, sent in host.sent if sent}


@pytest.mark.parametrize("place", ["", "/acme", "/acme/skills", "/acme/skills.git"])
async def test_a_token_opens_the_repositories_of_its_place_and_is_told_to_no_other(host: HttpsHost, place: str) -> None:
    assert await files_of(environment(host, place), host) == ["one/SKILL.md", "two/SKILL.md"]
    assert {sent for path, sent in host.sent if path.startswith("/acme/")} == {ACME.header}
    assert await files_of(environment(host, place), host, "/other/skills")
    assert told(host) == ({"acme"} if place else {"acme", "other"})


async def test_a_user_and_a_password_are_sent_as_such(host: HttpsHost) -> None:
    env = environment(host, kind="basic", user="reader")
    host.logins["/acme/"] = Login("", "reader", SECRET).header
    assert await files_of(env, host) == ["one/SKILL.md", "two/SKILL.md"]


@pytest.mark.parametrize("place", [None, "/acme/other", "/other"])
async def test_what_asks_for_a_login_that_is_not_there_is_said_once_and_for_all(
    host: HttpsHost, place: str | None
) -> None:
    env = environment(host, secret="") if place is None else environment(host, place)
    with pytest.raises(
        RepositoryNotFound, match=r"asks for sign-in.*an operator can add a credential for 127\.0\.0\.1"
    ) as e:
        await files_of(env, host)
    assert not e.value.transient
    assert told(host) == set()


async def test_a_refused_credential_is_told_to_the_operator_and_is_no_proof_that_the_repository_is_gone(
    host: HttpsHost, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(RepositoryRefused, match="does not let this registry in") as e:
        await files_of(environment(host, secret="expired-secret"), host)
    assert not e.value.transient
    assert f"refused the credential for 127.0.0.1:{host.port}" in caplog.text
    assert "expired-secret" not in caplog.text + str(e.value)
    with pytest.raises(RepositoryNotFound, match="not shown to this registry"):
        await files_of(environment(host), host, "/acme/absent")


async def test_every_request_of_a_shared_snapshot_has_the_login_and_its_folder_has_no_secret(
    host: HttpsHost, tmp_path: Path
) -> None:
    env = environment(host)
    repository = repository_url(env, f"https://127.0.0.1:{host.port}/acme/skills")
    sha = git(tmp_path / "acme/skills.git", "rev-parse", "HEAD").decode().strip()

    async def read(name: str) -> Snapshot:
        wanted = files_of_package(name)

        async def also() -> Wanted:
            return wanted

        asked = Asked(repository, sha, wanted, also, find_ref=True)
        async with shared_snapshot(env, asked) as snapshot:
            return snapshot

    assert {entry.path for entry in (await read("one")).entries if entry.size} == {"one/SKILL.md"}
    first = len(host.sent)
    # The snapshot is there already, and what it lacks is fetched into it.
    assert (await read("two")).ref == "HEAD"
    assert len(host.sent) > first
    assert {sent for _, sent in host.sent} == {ACME.header}
    for path in (tmp_path / "data").rglob("*"):
        assert not ACME.repeated_in(str(path))
        assert not path.is_file() or ACME.scrub(path.read_bytes()) == path.read_bytes()


async def test_a_commit_that_is_behind_a_branch_is_looked_for_with_the_login(host: HttpsHost, tmp_path: Path) -> None:
    repository = tmp_path / "acme/skills.git"
    old = git(repository, "rev-parse", "HEAD").decode().strip()
    commit(repository, skills("three"))
    assert await files_of(environment(host), host, f"/acme/skills/tree/{old}") == ["one/SKILL.md", "two/SKILL.md"]
    assert {sent for _, sent in host.sent} == {ACME.header}


async def test_no_redirect_takes_the_login_elsewhere(host: HttpsHost, tmp_path: Path) -> None:
    with https_host(tmp_path) as other, socket.create_server(("127.0.0.1", 0)) as plain:
        plain.setblocking(False)
        bases = (
            f"https://127.0.0.1:{other.port}",
            f"https://localhost:{host.port}",
            f"http://127.0.0.1:{port_of(plain)}",
        )
        for base in bases:
            host.answers["/acme/"] = always(302, headers={"Location": f"{base}/elsewhere/info/refs"})
            with pytest.raises(RepositoryMoved):
                await files_of(environment(host), host)
        assert other.requests == []
        with pytest.raises(BlockingIOError):
            plain.accept()
    assert not [path for path in host.requests if path.startswith("/elsewhere")]


async def test_a_host_that_repeats_the_secret_makes_nobody_read_it(host: HttpsHost) -> None:
    def repeat(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        said = f"ERR you sent {handler.headers['Authorization']}, that is {SECRET}\n".encode()
        head = b"001e# service=git-upload-pack\n0000"
        content = head + f"{len(said) + 4:04x}".encode() + said
        send(handler, 200, content, {"Content-Type": "application/x-git-upload-pack-advertisement"})

    host.answers["/acme/"] = repeat
    with pytest.raises(FetchFailed, match=r"you sent Basic \(secret\), that is \(secret\)"):
        await files_of(environment(host), host)


@pytest.mark.parametrize(
    ("place", "url", "fits"),
    [
        ("git.example", "https://git.example/a/b", True),
        ("git.example", "https://git.example:443/a/b", True),
        ("git.example", "https://GIT.example/a/b.git/info/lfs/objects/batch", True),
        ("git.example", "http://git.example/a/b", False),
        ("git.example", "https://git.example:8443/a/b", False),
        ("git.example", "https://git.example.evil/a/b", False),
        ("git.example", "https://evil@git.example/a/b", False),
        ("git.example", "https://evil/git.example", False),
        ("git.example:8443", "https://git.example:8443/a/b", True),
        ("git.example:8443", "https://git.example/a/b", False),
        ("[::1]:8443", "https://[::1]:8443/a/b", True),
        ("git.example/acme", "https://git.example/acme/b", True),
        ("git.example/acme", "https://git.example/acme-evil/b", False),
        ("git.example/acme", "https://git.example/Acme/b", False),
        ("git.example/acme", "https://git.example/other/../acme/b", False),
        ("git.example/acme", "https://git.example/acme/../other", False),
        ("git.example/acme", "https://git.example/acme/%2e%2e/other", False),
        ("git.example/acme/b", "https://git.example/acme/b.git/info/lfs", True),
        ("git.example/acme/b", "https://git.example/acme/bc", False),
        ("github.com/Acme", "https://github.com/acme/b", True),
    ],
)
def test_a_login_is_for_its_place_alone(place: str, url: str, fits: bool) -> None:
    assert Login(place, "u", "s").is_for(url) is fits


def test_the_longest_place_that_fits_is_used_and_no_secret_shows() -> None:
    logins = [Login(place, "u", SECRET) for place in ("git.example/acme", "git.example", "git.example/acme/b")]
    assert login_for(logins, "https://git.example/acme/c") == logins[0]
    assert login_for(logins, "https://git.example/acme/b") == logins[2]
    assert login_for(logins, "https://other.example/acme/b") is None
    assert SECRET not in repr(replace(SourcePolicy(), logins=tuple(logins)))


@pytest.mark.parametrize(
    "address",
    [
        "https://{}@git.example.org/acme/skills",
        "https://user:{}@git.example.org/acme/skills.git#main",
        "{}@github.com/acme/skills",
        "user:{}@github.com/acme/skills",
        "https:{}@github.com/acme/skills",
        "//{}@github.com/acme/skills",
        "{}@github.com:acme/skills",
        "ssh://{}@git.example.org/acme/skills",
        "ssh://git:{}@git.example.org/acme/skills",
        "git+https://{}@git.example.org/acme/skills",
        "git+ssh://{}@git.example.org/acme/skills",
    ],
)
def test_a_token_in_an_address_is_refused_with_a_word_and_is_not_repeated(address: str) -> None:
    with pytest.raises(InvalidRepositoryURL, match="neither used nor stored") as caught:
        normalise_repository_url(address.format("ghp_16C7e42F292c"), SourcePolicy())
    assert "ghp_" not in str(caught.value)
