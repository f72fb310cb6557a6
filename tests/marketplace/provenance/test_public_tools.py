"""Public tools verify what the registry signed, without it: model_signing, securesystemslib, cryptography."""

from __future__ import annotations

import hashlib
import html
import io
import json
import re
import shlex
import subprocess
import sys
import zipfile
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from django.test import Client
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer._key import SSlibKey

from marketplace.catalog import delete_skill, quarantine_version, rename_skill, restore, yank_version
from marketplace.provenance.signing import sign_published
from tests.marketplace.factories import publish_example, skill_md
from tests.marketplace.provenance import rfc9162
from tests.marketplace.provenance.signing_registry import PUBLIC_URL, signing_with
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

SLUG = "hello-skill"
FILES = {
    "SKILL.md": skill_md(SLUG, "Says hello."),
    ".gitignore": "*.log\n",
    ".github/workflows/x.yml": "on: push\n",
    "a/b/c.txt": "c",
    "a.txt": "a",
    "a-b/Grüße 挨拶.md": "hello",
    "empty": "",
    "run.sh": "#!/bin/sh\necho hello\n",
}


def model_signing_accepts(folder: Path, signature: Path, key: Path) -> bool:
    words = ["verify", "key", str(folder), "--signature", str(signature), "--public_key", str(key)]
    done = subprocess.run(
        [sys.executable, "-m", "model_signing", *words, "--no-ignore-git-paths"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # A tool that fell over has accepted nothing and refused nothing.
    assert "Verification" in done.stdout + done.stderr, done.stderr
    return done.returncode == 0


def fetched(client: Client, path: str, target: Path) -> Path:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    target.write_bytes(answer.content)
    return target


def public_key(client: Client, kid: str) -> bytes:
    """Return a public key in PEM by its name, which is its digest."""
    pem: bytes = client.get(f"/.well-known/vskill-keys/{kid}.pem").content
    assert hashlib.sha256(pem).hexdigest() == kid
    return pem


def verified_by_the_lines_of_the_page(client: Client, folder: Path) -> Path:
    """Do in ``folder`` what the page says, and return the folder with the files of the skill."""
    folder.mkdir()
    page = client.get(f"/skills/{SLUG}").content.decode()
    [block] = re.findall(r'<pre id="verify-files"[^>]*>(.*?)</pre>', page, re.DOTALL)
    lines = html.unescape(re.sub(r"<[^>]+>", "", block)).splitlines()
    fetch, fetch_signature, fetch_key, unpack, verify = lines
    for line in (fetch, fetch_signature, fetch_key):
        _curl, _options, target, address = shlex.split(line)
        fetched(client, address.removeprefix(PUBLIC_URL), folder / target)
    verify = verify.replace("model_signing", f"{shlex.quote(sys.executable)} -m model_signing", 1)
    done = subprocess.run(
        ["sh", "-ec", f"{unpack}\n{verify}"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "Verification succeeded\n"), done.stderr
    return folder / SLUG


def test_model_signing_accepts_the_unpacked_archives_and_nothing_that_was_changed(
    client: Client, tmp_path: Path
) -> None:
    with signing_with(tmp_path / "keys.pem") as env:
        publish_example(env, name=SLUG, files=FILES)
        assert client.get(f"/skills/{SLUG}/download/0.0.1.model.sig").status_code == 404
        assert "follows within a minute" in client.get(f"/skills/{SLUG}").content.decode()
        sign_published(env)
        told = client.get(f"/api/v1/skills/{SLUG}/provenance").json()
        signature = fetched(client, told["modelSignature"], tmp_path / "model.sig")
        key = tmp_path / "registry.pem"
        key.write_bytes(public_key(client, told["modelSignatureKeyId"]))
        content = client.get(f"/skills/{SLUG}/download/0.0.1.zip").content
        tarred = verified_by_the_lines_of_the_page(client, tmp_path / "by hand")
    zipped = tmp_path / "zip"
    zipfile.ZipFile(io.BytesIO(content)).extractall(zipped)
    assert model_signing_accepts(zipped, signature, key)
    (zipped / ".github/workflows/x.yml").write_text("on: [push, schedule]\n")
    assert not model_signing_accepts(zipped, signature, key)
    (tarred / "more.sh").write_text("#!/bin/sh\n")
    assert not model_signing_accepts(tarred, signature, key)


def dsse_payload(sealed: dict[str, Any], pem: bytes) -> dict[str, Any]:
    """Return the statement in an envelope, as securesystemslib verifies it; it is that of another key by no means."""
    envelope = Envelope.from_dict(json.loads(json.dumps(sealed)))
    kid = sealed["signatures"][0]["keyid"]
    key = SSlibKey.from_crypto(load_pem_public_key(pem), kid)
    assert list(envelope.verify([key], 1)) == [kid]
    envelope.payload += b" "
    with pytest.raises(VerificationError):
        envelope.verify([key], 1)
    payload: dict[str, Any] = json.loads(b64decode(sealed["payload"]))
    return payload


def test_the_statement_of_a_version_verifies_with_its_key_also_after_that_was_replaced(
    client: Client, tmp_path: Path
) -> None:
    def statement(version: str) -> tuple[dict[str, Any], str]:
        told = client.get(f"/api/v1/skills/{SLUG}/provenance?version={version}").json()
        assert client.get(f"/skills/{SLUG}/download/{version}.intoto.json").json() == told["statement"]
        return dsse_payload(told["statement"], public_key(client, told["keyId"])), told["keyId"]

    with signing_with(tmp_path / "first.pem") as env:
        publish_example(env, name=SLUG, source_ref="v1", verdict="notes")
        sign_published(env)
        first, old = statement("0.0.1")
        digests = [
            {"name": f"{SLUG}-0.0.1.{kind}", "digest": {"sha256": hashlib.sha256(content).hexdigest()}}
            for kind in ("zip", "tar.gz")
            if (content := client.get(f"/skills/{SLUG}/download/0.0.1.{kind}").content)
        ]
        shown = client.get(f"/api/v1/skills/{SLUG}/versions/0.0.1").json()
    assert (first["_type"], first["subject"]) == ("https://in-toto.io/Statement/v1", digests)
    predicate = first["predicate"]
    assert predicate["registry"] == PUBLIC_URL
    assert predicate["source"]["uri"] == "git+https://github.com/acme/skills"
    assert (predicate["source"]["ref"], predicate["source"]["path"]) == ("v1", f"skills/{SLUG}")
    assert predicate["verdict"] == "notes"
    assert predicate["engines"] == [{"name": "skilltotal", "version": "0.84.0", "status": "complete"}]
    assert predicate["source"]["digest"]["gitCommit"] in json.dumps(shown)
    with signing_with(tmp_path / "second.pem") as env:
        publish_example(env, name=SLUG, body="It has changed.")
        sign_published(env)
        assert statement("0.0.1") == (first, old)
        second, new = statement("0.0.2")
        keys = client.get("/.well-known/vskill-keys.json").json()["keys"]
        pages = [client.get(path).content.decode() for path in ("/about/verification", f"/skills/{SLUG}?version=0.0.1")]
    assert (second["predicate"]["skill"]["version"], new != old) == ("0.0.2", True)
    until = {one["kid"]: one["until"] for one in keys}
    assert len(keys) == 4
    assert until[new] is None
    assert until[old] is not None
    assert keys[0]["until"] is None
    assert [one["kid"] for one in keys if one["pem"] not in pages[0]] == []
    assert f"/.well-known/vskill-keys/{old}.pem" in pages[1]
    assert "replaced" in pages[1]


def log_root(client: Client, checkpoint: str) -> tuple[int, bytes]:
    """Return the size and the root hash in a checkpoint, verified as C2SP's signed-note and tlog-checkpoint say."""
    text, signature = checkpoint.split("\n\n")
    origin, size, root = text.split("\n")
    dash, name, signed = signature.split(" ")
    assert (dash, name, origin) == ("\N{EM DASH}", origin, "skills.example.org/log")
    hint, raw = b64decode(signed)[:4], b64decode(signed)[4:]
    for one in client.get("/.well-known/vskill-keys.json").json()["keys"]:
        key = load_pem_public_key(public_key(client, one["kid"]))
        if isinstance(key, Ed25519PublicKey):
            plain = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
            if hashlib.sha256(name.encode() + b"\n\x01" + plain).digest()[:4] == hint:
                key.verify(raw, f"{text}\n".encode())
                with pytest.raises(InvalidSignature):
                    key.verify(raw, f"{text} \n".encode())
                return int(size), b64decode(root)
    raise AssertionError(f"No key of the registry signed {checkpoint!r}.")


def hashes(client: Client, path: str) -> list[bytes]:
    return [b64decode(one) for one in client.get(path).json()["hashes"]]


def test_the_log_proves_each_verdict_and_withdrawal_and_that_nothing_of_it_was_changed(
    client: Client, tmp_path: Path
) -> None:
    with signing_with(tmp_path / "keys.pem") as env:
        assert client.get("/api/v1/log").status_code == 404
        for number in range(5):
            publish_example(env, name=f"skill-{number}", verdict="held" if number == 3 else "clear")
        sign_published(env)
        before = log_root(client, client.get("/api/v1/log/checkpoint").content.decode())
        rename_skill(env, "skill-4", "another-name", actor="test", reason="asked for")
        delete_skill(env, "skill-0", actor="test", reason="a reason that is nobody's business")
        restore(env, "skill-0", actor="test", reason="a mistake")
        yank_version(env, "skill-1", "0.0.1", actor="test", reason="a reason that is nobody's business")
        quarantine_version(env, "skill-3", "0.0.1", actor="test", reason="a reason that is nobody's business")
        sign_published(env)
        told = client.get("/api/v1/log").json()
        size, root = log_root(client, told["checkpoint"])
        entries = [one["entry"] for one in client.get("/api/v1/log/entries").json()["entries"]]
        assert (size, before[0]) == (len(entries), 5)
        for index, entry in enumerate(entries):
            path = hashes(client, f"/api/v1/log/inclusion?index={index}")
            assert rfc9162.is_included(rfc9162.leaf(entry.encode()), index, size, path, root)
        path = hashes(client, "/api/v1/log/consistency?first=5")
        assert rfc9162.is_consistent(5, size, path, before[1], root)
        [first, last] = client.get("/api/v1/skills/skill-1/provenance?version=0.0.1").json()["log"]
        refused = [
            client.get(f"/api/v1/log/{query}").status_code
            for query in (
                "inclusion?index=10",
                "inclusion",
                "inclusion?index=0&size=11",
                "consistency?first=0",
                "entries?x=1",
            )
        ]
    events = [json.loads(entry) for entry in entries]
    assert [one["type"] for one in events] == ["published"] * 5 + [
        *("renamed", "deleted", "restored", "yanked", "version-quarantined"),
    ]
    assert [one["verdict"] for one in events[:5]] == ["clear", "clear", "clear", "held", "clear"]
    assert events[8]["contentHash"] == events[1]["contentHash"]
    assert events[5]["identity"] == events[4]["identity"]
    assert (events[4]["skill"], events[5]["skill"]) == ("skill-4", "another-name")
    assert (entries[first["index"]], entries[last["index"]]) == (first["entry"], last["entry"])
    assert "nobody" not in "".join(entries)
    assert refused == [400] * 5


def test_a_registry_without_keys_says_that_it_does_not_sign_and_keeps_the_log(client: Client, env: WorkerEnv) -> None:
    publish_example(env, name=SLUG)
    assert sign_published(env).entries == 1
    told = client.get(f"/api/v1/skills/{SLUG}/provenance").json()
    assert (told["signing"], told["statement"], len(told["log"])) == (False, None, 1)
    for path in ("/api/v1/log", f"/skills/{SLUG}/download/0.0.1.model.sig"):
        answer = client.get(path)
        assert (answer.status_code, answer.content) == (404, b"This registry does not sign what it publishes.")
    assert client.get("/.well-known/vskill-keys.json").json() == {"keys": []}
    for path in (f"/skills/{SLUG}", "/about/verification"):
        assert "his registry does not sign what it publishes" in client.get(path).content.decode()
