"""A version is one content whichever client fetches it, and a withdrawal is seen by all of them at once."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote, unquote

import pytest

from marketplace.artifacts.fingerprints import content_hash
from marketplace.catalog import quarantine_skill, quarantine_version
from tests.clients.conftest import ClientMachine, LiveServer
from tests.marketplace.factories import publish_example, skill_md
from vskill.environments import WorkerEnv

FILES: dict[str, str | bytes] = {
    "SKILL.md": skill_md("hello-skill", "Says hello."),
    "scripts/grüße.sh": "#!/bin/sh\r\necho hello\n",
    "data/empty": "",
    "data/all.bin": bytes(range(256)) * 300,
}
WHO = {"actor": "test", "reason": "steals keys"}


def get(server: LiveServer, path: str, body: dict[str, Any] | None = None) -> bytes:
    """Return an answer; raise ``LookupError`` where it is not there."""
    sent = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(f"{server.url}{path}", sent) as answer:  # noqa: S310 - on loopback
            content: bytes = answer.read()
            return content
    except urllib.error.HTTPError as error:
        if error.code in (404, 410):
            raise LookupError(path) from error
        raise


def hash_of(files: Iterable[tuple[str, bytes]]) -> str:
    return content_hash((path, hashlib.sha256(content).hexdigest()) for path, content in files)


def zipped(server: LiveServer, path: str) -> str:
    with zipfile.ZipFile(io.BytesIO(get(server, path))) as archive:
        return hash_of((one.filename, archive.read(one)) for one in archive.infolist())


def packed(server: LiveServer, path: str, digest: str = "") -> str:
    content = get(server, path)
    assert digest in ("", f"sha256:{hashlib.sha256(content).hexdigest()}")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = [one for one in archive.getmembers() if one.isfile()]
        return hash_of((one.name, archive.extractfile(one).read()) for one in members)  # type: ignore[union-attr]  # files


def from_index(server: LiveServer, path: str) -> str:
    entries = json.loads(get(server, f"{path}/.well-known/agent-skills/index.json"))["skills"]
    if not entries:
        raise LookupError(path)
    (one,) = entries
    return packed(server, one["url"], one["digest"])


def from_mcp(server: LiveServer, _machine: ClientMachine) -> str:
    def ask(method: str, uri: str) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"uri": uri}}
        said: dict[str, Any] = json.loads(get(server, "/mcp", body))
        if "error" in said:
            raise LookupError(said["error"]["message"])
        result: dict[str, Any] = said["result"]
        return result

    start = "skill://hello-skill/"
    found = {}
    for one in ask("skills/get", f"{start}SKILL.md")["skill"]["resources"]:
        (content,) = ask("resources/read", one["uri"])["contents"]
        read = base64.b64decode(content["blob"]) if "blob" in content else content["text"].encode()
        assert one["digest"] == f"sha256:{hashlib.sha256(read).hexdigest()}"
        found[unquote(one["uri"].removeprefix(start))] = read
    return hash_of(found.items())


def each_file(server: LiveServer, _machine: ClientMachine) -> str:
    address = "/api/v1/skills/hello-skill/file?path="
    return hash_of((path, get(server, address + quote(path))) for path in FILES)


def checked_out(machine: ClientMachine, lines: str) -> str:
    folder = machine.work / "cloned"
    machine.shell("rm -rf cloned && git init -q cloned")
    try:
        machine.shell(f"cd cloned && {lines}")
    except AssertionError as error:
        raise LookupError(str(error)) from error
    root = folder / "plugins/hello-skill/skills/hello-skill"
    found = [(one.relative_to(root).as_posix(), one.read_bytes()) for one in root.rglob("*") if one.is_file()]
    if not found:
        raise LookupError("no files")
    return hash_of(found)


def by_git(server: LiveServer, machine: ClientMachine) -> str:
    address = f"{server.url}/git/acme/hello-skill"
    return checked_out(machine, f"git fetch -q {address} HEAD && git checkout -q FETCH_HEAD")


def by_plugin(server: LiveServer, machine: ClientMachine) -> str:
    plugins = json.loads(get(server, "/marketplace.json"))["plugins"]
    if not plugins:
        raise LookupError("no plugins")
    source = plugins[0]["source"]
    return checked_out(machine, f"git fetch -q {source['url']} {source['sha']} && git checkout -q {source['sha']}")


def told(path: str, *fields: str | int) -> Callable[[LiveServer, ClientMachine], str]:
    """Return how to read the content hash that the API tells at ``path``."""

    def read(server: LiveServer, _machine: ClientMachine) -> str:
        found = json.loads(get(server, path))
        for field in fields:
            if not found:
                raise LookupError(path)
            found = found[field]
        return str(found)

    return read


SKILL = "/api/v1/skills/hello-skill"
WAYS: dict[str, Callable[[LiveServer, ClientMachine], str]] = {
    "clawhub": lambda server, _machine: zipped(server, "/api/v1/download?slug=hello-skill"),
    "the archive of a page": lambda server, _machine: zipped(server, "/skills/hello-skill/download/latest.zip"),
    "the exact archive": lambda server, _machine: packed(server, "/skills/hello-skill/download/1.0.0.tar.gz"),
    "the index of the skill": lambda server, _machine: from_index(server, "/skills/hello-skill"),
    "the index of the publisher": lambda server, _machine: from_index(server, "/publishers/acme"),
    "single files": each_file,
    "git": by_git,
    "a plugin": by_plugin,
    "mcp": from_mcp,
    "what the details say": told(SKILL, "latestVersion", "contentHash"),
    "what the versions say": told(f"{SKILL}/versions", "items", 0, "contentHash"),
    "what the version says": told(f"{SKILL}/versions/1.0.0", "version", "contentHash"),
    "what the scans say": told(f"{SKILL}/scans", "contentHash"),
}


@pytest.mark.parametrize("withdraw", ["the skill", "the version"])
def test_every_client_gets_one_content_and_none_gets_what_is_withdrawn(
    env: WorkerEnv, server: LiveServer, machine: ClientMachine, withdraw: str
) -> None:
    publish_example(env, declared_version="1.0.0", files=FILES)
    wanted = hash_of((path, text if isinstance(text, bytes) else text.encode()) for path, text in FILES.items())
    assert {name: way(server, machine) for name, way in WAYS.items()} == dict.fromkeys(WAYS, wanted)

    if withdraw == "the skill":
        quarantine_skill(env, "hello-skill", **WHO)
    else:
        quarantine_version(env, "hello-skill", "1.0.0", **WHO)
    for name, way in WAYS.items():
        with pytest.raises(LookupError):
            pytest.fail(f"{name} still gives {way(server, machine)}")
