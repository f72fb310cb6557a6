"""Objects over https: what is asked for, from checked addresses alone, within limits, and never another file."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from submissions.source.lfs.remote_objects import LfsLimits, Missing, batch_address, fetch_objects
from submissions.source.logins import Login
from submissions.source.urls import SourcePolicy
from tests.submissions.source.https_host import CERTIFICATE, Answer, port_of, silent_host
from tests.submissions.source.lfs.lfs_host import LfsHost, always, lfs_host, pointer, send

ONE, TWO = b"first model " * 1000, b"second model"
BATCH = "/a/skills.git/info/lfs/objects/batch"
OVER_SSH = b'{"transfer": "ssh", "objects": []}'
ODD = b'{"objects": [1, {}, {"oid": []}, {"oid": null, "actions": 1}]}'
METADATA = "https://169.254.169.254/latest/meta-data/iam"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[LfsHost]:
    with lfs_host(tmp_path) as serving:
        serving.add(ONE, TWO)
        yield serving


@pytest.fixture
def policy(host: LfsHost) -> SourcePolicy:
    return SourcePolicy(private_hosts=frozenset({f"127.0.0.1:{host.host.port}"}), ca_file=CERTIFICATE)


async def bring(
    host: LfsHost, policy: SourcePolicy, folder: Path, *contents: bytes, limits: LfsLimits | None = None
) -> dict[str, Missing]:
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    wanted = [pointer(content) for content in contents or (ONE,)]
    return await fetch_objects(
        f"{host.base}/a/skills", wanted, folder, policy=policy, limits=limits or LfsLimits(seconds=20)
    )


def there(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".part"}


@pytest.mark.parametrize("url", ["https://h.example/a/skills", "https://h.example/a/skills.git"])
def test_the_api_is_where_git_lfs_looks_for_it(url: str) -> None:
    assert batch_address(url) == f"https://h.example{BATCH}"


async def test_what_the_host_has_arrives_and_the_rest_is_named(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path
) -> None:
    missing = await bring(host, policy, tmp_path / "o", ONE, TWO, b"not there")
    assert there(tmp_path / "o") == {pointer(ONE).oid: ONE, pointer(TWO).oid: TWO}
    assert missing == {pointer(b"not there").oid: Missing("its host does not have it")}
    [question] = host.asked
    assert (question["operation"], question["transfers"]) == ("download", ["basic"])
    assert question["objects"][0] == {"oid": pointer(ONE).oid, "size": len(ONE)}


async def test_only_harmless_headers_of_the_answer_are_sent_and_only_to_its_host(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path
) -> None:
    given = {
        "Authorization": "RemoteAuth x",
        "X-Amz-Date": "1",
        "Cookie": "a=b",
        "Host": "internal.example",
        "X-Forwarded-For": "10.0.0.1",
        "Transfer-Encoding": "chunked",
        "X-Amz-Bad": "a\r\nX-Injected: 1",
        "X-Goog-Number": 1,
    }
    host.place["header"] = given
    assert await bring(host, policy, tmp_path / "o") == {}
    [seen] = host.seen
    assert (seen["Authorization"], seen["X-Amz-Date"]) == ("RemoteAuth x", "1")
    assert seen["Host"] == f"127.0.0.1:{host.host.port}"
    assert not {name.lower() for name in seen} & {"cookie", "x-forwarded-for", "transfer-encoding", "x-amz-bad"}
    assert "X-Injected" not in str(seen)


async def test_a_redirect_is_followed_and_takes_no_header_to_another_host(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path
) -> None:
    host.place["header"] = {"Authorization": "RemoteAuth x"}
    with lfs_host(tmp_path, batch="/none") as other:
        other.add(ONE)
        host.host.answers = {
            BATCH: host.batch,
            "/objects/": always(302, headers={"Location": f"{other.base}/objects/{pointer(ONE).oid}"}),
        }
        both = replace(policy, private_hosts=policy.private_hosts | {f"127.0.0.1:{other.host.port}"})
        assert await bring(host, both, tmp_path / "o") == {}
        assert [seen.get("Authorization") for seen in other.seen] == [None]
        # The same redirect, where the policy names only the first host.
        [missing] = (await bring(host, policy, tmp_path / "p")).values()
    assert "not on the public internet" in missing.reason
    assert len(other.seen) == 1
    assert there(tmp_path / "o") == {pointer(ONE).oid: ONE}


async def test_a_redirect_on_the_same_host_keeps_its_headers(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path
) -> None:
    host.place = {"header": {"Authorization": "x"}, "href": f"{host.base}/first"}
    host.host.answers["/first"] = always(307, headers={"Location": f"/objects/{pointer(ONE).oid}"})
    assert await bring(host, policy, tmp_path / "o") == {}
    assert [seen["Authorization"] for seen in host.seen] == ["x"]


async def test_a_circle_of_redirects_ends(host: LfsHost, policy: SourcePolicy, tmp_path: Path) -> None:
    host.host.answers["/objects/"] = always(302, headers={"Location": f"/objects/{pointer(ONE).oid}"})
    assert await bring(host, policy, tmp_path / "o") == {pointer(ONE).oid: Missing("its host redirects too often")}
    assert len([path for path in host.host.requests if path.startswith("/objects/")]) == 4


@pytest.mark.parametrize(
    "location", [METADATA, "http://example.com/x", "file:///etc/passwd", "https://a@127.0.0.1/x", "https://[::1]/x", ""]
)
async def test_a_redirect_to_where_nobody_may_go_is_not_followed(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path, location: str
) -> None:
    host.host.answers["/objects/"] = always(302, headers={"Location": location})
    [missing] = (await bring(host, policy, tmp_path / "o", limits=LfsLimits(seconds=20, redirects=1))).values()
    assert not missing.transient
    assert there(tmp_path / "o") == {}


@pytest.mark.parametrize(
    ("href", "reason"),
    [
        (METADATA, "not on the public internet"),
        ("https://127.0.0.1:1/x", "not on the public internet"),
        ("https://2130706433/x", "not on the public internet"),
        ("https://[::ffff:10.0.0.1]/x", "not on the public internet"),
        ("https://localhost/x", "not on the public internet"),
        ("http://93.184.216.34/x", "no plain https address"),
        ("https://user:pass@93.184.216.34/x", "no plain https address"),
        ("https://93.184.216.34/a b", "no plain https address"),
        ("https://93.184.216.34:99999/x", "names no address"),
        ("https://[x/", "names no address"),
        pytest.param(f"https://93.184.216.34/{'x' * 100_000}", "no plain https address", id="very long"),
    ],
)
async def test_an_object_at_a_forbidden_address_is_not_asked_for(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path, href: str, reason: str
) -> None:
    host.place["href"] = href
    [missing] = (await bring(host, policy, tmp_path / "o")).values()
    assert reason in missing.reason
    assert not missing.transient


async def test_a_public_repository_sends_nobody_to_the_hosts_of_this_network(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A repository whose own host has no leave to be private, on an address that counts as public here.
    monkeypatch.setattr("submissions.source.hosts.is_public", lambda address: str(address) == "127.0.0.1")
    with lfs_host(tmp_path, batch="/none") as inside:
        inside.add(ONE)
        host.place["href"] = f"https://127.0.0.2:{inside.host.port}/objects/x"
        named = SourcePolicy(private_hosts=frozenset({f"127.0.0.2:{inside.host.port}"}), ca_file=CERTIFICATE)
        [missing] = (await bring(host, named, tmp_path / "o")).values()
        assert inside.host.requests == []
    assert "not on the public internet" in missing.reason


def short(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
    send(handler, 200, ONE[:-1], {"Connection": "close"})


def endless(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    while True:
        handler.wfile.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")


def cut(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
    send(handler, 200, ONE[:100], {"Content-Length": str(len(ONE))})
    handler.close_connection = True


@pytest.mark.parametrize(
    ("answer", "reason", "transient"),
    [
        pytest.param(short, "what its host sends is another file", False, id="wrong size"),
        pytest.param(always(200, ONE[::-1]), "what its host sends is another file", False, id="wrong hash"),
        pytest.param(endless, "what its host sends is another file", False, id="endless"),
        pytest.param(cut, "the transfer from its host broke off", True, id="cut short"),
        pytest.param(always(404), "its host answers with status 404", False, id="gone"),
        pytest.param(always(403), "its host answers with status 403", False, id="forbidden"),
        pytest.param(always(206, ONE), "its host answers with status 206", False, id="a part"),
        pytest.param(always(503), "its host answers with status 503", True, id="busy"),
        pytest.param(always(429), "its host answers with status 429", True, id="too often"),
    ],
)
async def test_what_is_not_the_object_is_not_taken(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path, answer: Answer, reason: str, transient: bool
) -> None:
    host.host.answers[f"/objects/{pointer(ONE).oid}"] = answer
    host.host.answers["/objects/"] = host.host.answers.pop("/objects/")
    missing = await bring(host, policy, tmp_path / "o", ONE, TWO)
    assert missing == {pointer(ONE).oid: Missing(reason, transient)}
    assert there(tmp_path / "o") == {pointer(TWO).oid: TWO}


async def test_a_body_that_never_ends_is_left_at_the_time_limit_and_what_came_before_is_kept(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path
) -> None:
    ended: list[bool] = []

    def dripping(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        send(handler, 200, TWO[:1], {"Content-Length": str(len(TWO))})
        handler.connection.settimeout(60)
        # The other side closes when it is ended, and nothing else ends this.
        ended.append(handler.connection.recv(1) == b"")

    host.host.answers = {f"/objects/{pointer(TWO).oid}": dripping, **host.host.answers}
    missing = await bring(host, policy, tmp_path / "o", ONE, TWO, limits=LfsLimits(seconds=4))
    assert missing == {pointer(TWO).oid: Missing("its host did not send it within 4 seconds", transient=True)}
    assert there(tmp_path / "o") == {pointer(ONE).oid: ONE}


async def test_a_host_that_never_answers_is_left_at_the_time_limit(tmp_path: Path) -> None:
    with silent_host() as listener:
        port = port_of(listener)
        policy = SourcePolicy(private_hosts=frozenset({f"127.0.0.1:{port}"}))
        missing = await fetch_objects(
            f"https://127.0.0.1:{port}/a/skills", [pointer(ONE)], tmp_path, policy=policy, limits=LfsLimits(seconds=2)
        )
    assert [one.transient for one in missing.values()] == [True]


def ten_thousand(host: LfsHost) -> bytes:
    one = {"size": 1, "actions": {"download": {"href": f"{host.base}/objects/x"}}}
    places = [{**one, "oid": f"{number:064x}"} for number in range(10_000)]
    mine = {
        **one,
        "oid": pointer(ONE).oid,
        "actions": {"download": {"href": f"{host.base}/objects/{pointer(ONE).oid}"}},
    }
    return json.dumps({"objects": [*places, mine, mine]}).encode()


async def test_objects_that_nobody_asked_for_are_not_fetched(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path
) -> None:
    host.host.answers[BATCH] = always(200, ten_thousand(host))
    few = await bring(host, policy, tmp_path / "o")
    assert few == {pointer(ONE).oid: Missing("its host answers with too much")}
    assert await bring(host, policy, tmp_path / "o", limits=LfsLimits(seconds=20, answer_bytes=10**7)) == {}
    assert len(host.seen) == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(always(404), "its host answers with status 404", id="no such page"),
        pytest.param(always(401), "its host answers with status 401", id="a login"),
        pytest.param(always(302, headers={"Location": METADATA}), "its host answers with a redirect", id="a redirect"),
        pytest.param(always(200, b"<html>"), "its host has no Git LFS", id="a page"),
        pytest.param(always(200, b"[" * 100_000), "its host has no Git LFS", id="a deep answer"),
        pytest.param(always(200, b"[]"), "its host has no Git LFS", id="a list"),
        pytest.param(always(200, OVER_SSH), "its host offers no plain download", id="another transfer"),
        pytest.param(always(200, ODD), "its host does not have it", id="an odd answer"),
        pytest.param(endless, "its host answers with too much", id="an endless answer"),
    ],
)
async def test_a_host_without_the_api_is_named_as_such(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path, answer: Answer, reason: str
) -> None:
    host.host.answers[BATCH] = answer
    assert await bring(host, policy, tmp_path / "o") == {pointer(ONE).oid: Missing(reason)}


@pytest.mark.parametrize("place", [{"header": 1}, {"href": 1}, {"href": None}, {"header": {"a": {}, "": ""}}])
async def test_an_answer_of_another_shape_breaks_nothing(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path, place: dict[str, object]
) -> None:
    host.place = place
    missing = await bring(host, policy, tmp_path / "o")
    assert set(missing.values()) <= {Missing("its host does not have it")}
    assert bool(missing) is ("href" in place)


async def test_the_certificate_is_checked(host: LfsHost, policy: SourcePolicy, tmp_path: Path) -> None:
    [missing] = (await bring(host, replace(policy, ca_file=None), tmp_path / "o")).values()
    assert missing == Missing("the certificate of its host could not be verified", transient=True)


@pytest.mark.parametrize(("name", "arrives"), [("git.test.example", True), ("other.test.example", False)])
async def test_a_name_is_resolved_once_and_has_to_be_that_of_the_certificate(
    host: LfsHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arrives: bool
) -> None:
    resolved: list[str] = []
    real: Callable[..., object] = socket.getaddrinfo

    def resolve(asked: str, *args: object, **options: object) -> object:
        resolved.append(asked)
        # The second answer would be that of somebody who rebinds the name.
        return real("127.0.0.1" if len(resolved) == 1 else "127.0.0.9", *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    named = SourcePolicy(private_hosts=frozenset({f"{name}:{host.host.port}"}), ca_file=CERTIFICATE)
    host.place["href"] = f"https://{name}:{host.host.port}/objects/{pointer(ONE).oid}"
    (tmp_path / "o").mkdir()
    url = f"https://{name}:{host.host.port}/a/skills"
    missing = await fetch_objects(url, [pointer(ONE)], tmp_path / "o", policy=named, limits=LfsLimits(seconds=20))
    assert resolved == [name]
    assert (missing == {}) is arrives
    assert bool(there(tmp_path / "o")) is arrives


async def test_nothing_is_written_beside_the_objects_by_the_name_of_one(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path
) -> None:
    host.host.answers[BATCH] = always(200, json.dumps({"objects": [{"oid": "../../x", "actions": {}}]}).encode())
    assert await bring(host, policy, tmp_path / "o") == {pointer(ONE).oid: Missing("its host does not have it")}
    assert there(tmp_path / "o") == {}


async def test_our_login_goes_to_the_api_of_its_host_and_to_no_store_on_another(
    host: LfsHost, policy: SourcePolicy, tmp_path: Path
) -> None:
    login = Login(f"127.0.0.1:{host.host.port}/a", "x-access-token", "s3cr3t/of+it")
    host.host.logins["/a/"] = login.header
    with lfs_host(tmp_path, batch="/none") as store:
        store.add(ONE)
        allowed = policy.private_hosts | {f"127.0.0.1:{store.host.port}"}
        entering = replace(policy, private_hosts=allowed, logins=(login,))
        # The host sends us elsewhere, and would have us tell that place what we told the host.
        host.place = {
            "href": f"{store.base}/objects/{pointer(ONE).oid}",
            "header": {"Authorization": login.header, "X-Amz-Token": f"a {login.secret} b", "X-Amz-Date": "1"},
        }
        assert await bring(host, entering, tmp_path / "o") == {}
        [seen] = store.seen
        assert seen["X-Amz-Date"] == "1"
        assert not {"Authorization", "X-Amz-Token"} & seen.keys()
    # Its own store may have it, where the host says so and not otherwise.
    host.place = {"header": {"Authorization": login.header}}
    assert await bring(host, entering, tmp_path / "p") == {}
    host.place = {}
    assert await bring(host, entering, tmp_path / "q") == {}
    assert [seen.get("Authorization") for seen in host.seen] == [login.header, None]
    [missing] = (await bring(host, policy, tmp_path / "r")).values()
    assert missing == Missing("its host answers with status 401")
