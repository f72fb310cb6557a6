"""A signing key that was stolen: what it signed is told, signed anew where that can be, and trusted no longer."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django.fixtures import Settings
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer._key import SSlibKey

from marketplace.models import ArchiveBlob, HistoryEvent, LogLeaf, SigningKey, SkillVersion, TreeHead, VersionSignature
from marketplace.models.provenance import ReplacedSignature
from marketplace.provenance import signing
from marketplace.provenance.compromise import Revocation, revoke
from marketplace.provenance.key_rotation import ids_of, replace_keys
from marketplace.provenance.keys import SigningKeyError, SigningKeys, public_pem, read_keys, write_keys
from marketplace.provenance.known_keys import remember_keys
from marketplace.provenance.log import sign_head
from marketplace.provenance.signing import sign_published
from marketplace.provenance.statements import signature_of
from marketplace.provenance.trust import KeyCompromised
from marketplace.provenance.verification import Check, verify_version
from submissions.recovery.problems import Kind
from submissions.recovery.provenance_checks import unsigned_problems
from tests.marketplace.factories import publish_example
from tests.marketplace.provenance import rfc9162
from tests.marketplace.provenance.signing_registry import signing_with
from tests.marketplace.provenance.test_public_tools import (
    dsse_payload,
    hashes,
    log_root,
    model_signing_accepts,
    public_key,
)
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.clock import database_now, isoformat, parse_isoformat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def env(tmp_path: Path) -> Iterator[WorkerEnv]:
    """Serve a registry that has signed three skills: ``early`` two days ago, ``late`` and ``damaged`` now."""
    with signing_with(tmp_path / "keys.pem") as made:
        publish_example(made, name="early", verdict="held")
        sign_published(made)
        days_ago = database_now(made.database) - timedelta(days=2)
        for signed in (VersionSignature, TreeHead):
            signed.objects.update(signed_at=days_ago)
        SigningKey.objects.update(since=days_ago)
        for name in ("late", "damaged"):
            publish_example(made, name=name, body=f"It is {name}.")
        sign_published(made)
        yield made


def names() -> list[str]:
    return list(SigningKey.objects.order_by("pk").values_list("key_id", flat=True))


def yesterday(env: WorkerEnv) -> str:
    return isoformat(database_now(env.database) - timedelta(days=1))


def revoked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    try:
        call_command("signing_key", "revoke", *words, "--json")
        code = 0
    except SystemExit as end:
        code = int(str(end.code))
    return code, json.loads(capsys.readouterr().out)


def checks(env: WorkerEnv, slug: str) -> dict[str, Check]:
    version = SkillVersion.objects.select_related("skill").get(name=slug)
    return {one.name: one for one in verify_version(env, version)}


def holds(env: WorkerEnv, slug: str) -> dict[str, bool | None]:
    return {name: one.holds for name, one in checks(env, slug).items()}


def damage() -> ArchiveBlob:
    """Let the zip archive of a skill be another one, and return the right one."""
    blob = ArchiveBlob.objects.get(sha256=SkillVersion.objects.get(name="damaged").zip_sha256)
    ArchiveBlob.objects.filter(pk=blob.pk).update(content=b"PK")
    return blob


def test_what_a_stolen_key_signed_is_told_and_signed_anew_where_the_registry_can_vouch_for_it(
    env: WorkerEnv, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, since = names(), yesterday(env)
    before = log_root(client, client.get("/api/v1/log/checkpoint").content.decode())
    right = damage()
    tried = revoked(capsys, *(name[:12] for name in old), "--since", since, "--dry-run")
    written = SigningKey.objects.exclude(compromised_since=None).count(), ReplacedSignature.objects.count()
    assert (written, names()) == ((0, 0), old)
    assert ids_of(read_keys(tmp_path / "keys.pem")) == tuple(old)

    code, told = revoked(capsys, *(name[:12] for name in old), "--since", since, "--reason", "a laptop is gone")
    assert (code, tried[0]) == (2, 2)
    assert [one["keyId"] for one in told["keys"]] == old
    outcomes = {one["skill"]: (one["before"], one["outcome"]) for one in told["versions"]}
    assert outcomes == {one["skill"]: (one["before"], one["outcome"]) for one in tried[1]["versions"]}
    assert outcomes.pop("damaged") == (False, "archives: the zip archive was changed")
    assert outcomes == {"early": (True, "signed anew"), "late": (False, "signed anew")}
    assert (told["entriesBefore"], told["entriesSigned"], told["logFaults"]) == (1, 3, [])

    # The file has new keys that its owner alone may read, and the former ones are beside it.
    file = tmp_path / "keys.pem"
    assert ids_of(read_keys(file)) == tuple(told["newKeys"])
    assert file.stat().st_mode & 0o777 == 0o600
    assert ids_of(read_keys(told["keptFile"])) == tuple(old)
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith(".new")] == []
    for slug in ("early", "late"):
        assert set(holds(env, slug).values()) == {True}
        assert told["newKeys"][0] in checks(env, slug)["statement"].detail
    assert holds(env, "damaged") == {
        "archives": False,
        "content": True,
        "statement": False,
        "files": False,
        "log": True,
    }
    assert "that is not trusted" in checks(env, "damaged")["files"].detail

    # The log tells of both keys, under a head of a new one, and begins with what it was.
    entries = [one["entry"] for one in client.get("/api/v1/log/entries").json()["entries"]]
    events = [json.loads(entry) for entry in entries][3:]
    assert [(one["type"], one["keyId"]) for one in events] == [("key-compromised", name) for name in old]
    assert {one["compromisedSince"] for one in events} == {since}
    assert "laptop" not in "".join(entries)
    head = client.get("/api/v1/log").json()
    assert head["keyId"] == told["newKeys"][0]
    size, root = len(entries), rfc9162.tree_hash([entry.encode() for entry in entries])
    path = hashes(client, f"/api/v1/log/consistency?first=3&second={size}")
    assert rfc9162.is_consistent(3, size, path, before[1], root)
    assert HistoryEvent.objects.filter(action="revoked", reason__contains="laptop").count() == 2

    # So does the list of keys, where the old ones are no longer given away.
    keys = {one["kid"]: one for one in client.get("/.well-known/vskill-keys.json").json()["keys"]}
    assert [keys[name]["compromisedSince"] for name in old] == [since, since]
    moment = parse_isoformat(since)
    assert moment is not None
    assert keys[old[0]]["revoked"] == {"revoked_at": int(moment.timestamp()), "reason": "compromised"}
    assert [keys[name]["compromisedSince"] for name in told["newKeys"]] == [None, None]
    assert [client.get(f"/.well-known/vskill-keys/{name}.pem").status_code for name in old] == [410, 410]
    page = client.get("/about/verification").content.decode()
    assert page.count("Compromised: nothing that it signed from") == 2

    # What cannot be vouched for says so, and is signed anew once it can.
    shown = client.get("/skills/damaged").content.decode()
    assert "Not trusted:" in shown
    assert "cannot vouch for this version" in shown
    assert "verify-files" not in shown
    assert client.get("/skills/damaged/download/0.0.1.model.sig").status_code == 404
    assert client.get("/api/v1/skills/damaged/provenance").json()["trusted"] is False
    assert sign_published(env).anew == 0
    assert [(problem.kind, problem.subject) for problem, _mend in unsigned_problems(env)] == [
        (Kind.UNSIGNED, "damaged 0.0.1")
    ]
    right.save()
    again, report = revoked(capsys, *old)
    assert (again, report["signedAnew"], report["keptFile"], report["newKeys"]) == (0, 3, None, told["newKeys"])
    assert set(holds(env, "damaged").values()) == {True}
    assert unsigned_problems(env) == []
    assert LogLeaf.objects.count() == size


def test_whoever_has_the_old_key_is_believed_by_nobody_who_has_the_new_one(
    env: WorkerEnv, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _code, told = revoked(capsys, *names())
    thief, provenance = read_keys(told["keptFile"]), client.get("/api/v1/skills/late/provenance").json()
    assert provenance["trusted"] is True
    folder, signature, pinned, new = (tmp_path / name for name in ("late", "model.sig", "old.pem", "new.pem"))
    zipfile.ZipFile(io.BytesIO(client.get("/skills/late/download/0.0.1.zip").content)).extractall(folder)
    signature.write_bytes(client.get(provenance["modelSignature"]).content)
    pinned.write_text(public_pem(thief.files.public_key()))
    new.write_bytes(public_key(client, provenance["modelSignatureKeyId"]))
    assert model_signing_accepts(folder, signature, new)
    assert not model_signing_accepts(folder, signature, pinned)
    dsse_payload(provenance["statement"], public_key(client, provenance["keyId"]))

    # Signed with the stolen keys: files that the registry never had, and another verdict.
    rows = tuple(SigningKey.objects.get(key_id=name) for name in ids_of(thief))
    version = SkillVersion.objects.select_related("skill").get(name="late")
    (folder / "more.sh").write_text("#!/bin/sh\n")
    digest = "a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf"
    version.manifest = [*version.manifest, {"path": "more.sh", "sha256": digest}]
    forged = signature_of(env, version, thief, (rows[0], rows[1]))
    signature.write_text(forged.files)
    assert model_signing_accepts(folder, signature, pinned), "the theft would be without danger"
    assert not model_signing_accepts(folder, signature, new)
    sealed = json.loads(forged.statement)
    kid = provenance["keyId"]
    key = SSlibKey.from_crypto(load_pem_public_key(public_key(client, kid)), kid)
    with pytest.raises(VerificationError):
        Envelope.from_dict(sealed).verify([key], 1)
    # And in the database, whatever the time that the thief gives it.
    old = VersionSignature.objects.filter(version=version)
    old.update(statement=forged.statement, key=rows[0], files=forged.files, files_key=rows[1])
    for days in (0, 900):
        old.update(signed_at=database_now(env.database) - timedelta(days=days))
        assert holds(env, "late")["files"] is False


def test_a_signature_from_before_the_theft_is_believed_and_says_from_when_it_is(
    env: WorkerEnv, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, since = names(), yesterday(env)
    # Nothing can be signed anew, because there is nothing to sign with.
    (tmp_path / "keys.pem").unlink()
    with pytest.raises(CommandError, match=r"The keys are marked.*run this again"):
        call_command("signing_key", "revoke", *old, "--since", since)
    found = checks(env, "early")
    assert set(holds(env, "early").values()) == {True}
    for name in ("statement", "files", "log"):
        assert f"before that key was compromised (from {since} on)" in found[name].detail
    assert holds(env, "late") == {"archives": True, "content": True, "statement": False, "files": False, "log": None}
    told = client.get("/api/v1/skills/early/provenance").json()
    assert (told["trusted"], told["compromisedSince"]) == (True, since)
    assert client.get("/skills/early/download/0.0.1.model.sig").status_code == 200
    shown = client.get("/skills/early").content.decode()
    assert "Signed before somebody else may have had the key" in shown
    assert "It will be signed anew." in shown
    assert "verify-files" not in shown
    # The newest head that is trusted is that from before.
    assert client.get("/api/v1/log").json()["size"] == 1
    call_command("signing_key", "list")
    assert f"compromised from {since} on" in capsys.readouterr().out

    # Whoever signs for the registry goes on with it, as soon as there are new keys.
    write_keys(tmp_path / "keys.pem")
    call_command("sign_published")
    assert "3 versions signed anew" in capsys.readouterr().out
    assert {value for slug in ("early", "late", "damaged") for value in holds(env, slug).values()} == {True}


def test_nothing_is_signed_with_a_revoked_key_and_what_was_told_of_it_is_not_taken_back(
    env: WorkerEnv, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, since = names(), yesterday(env)
    for words, says in (
        (("0" * 64,), "No environment has signed"),
        ((old[0][:7],), "too short"),
        ((old[0], "--since", "soon"), "is no time"),
        ((old[0], "--since", "2999-01-01"), "has not come yet"),
    ):
        with pytest.raises(CommandError, match=says):
            call_command("signing_key", "revoke", *words)
    assert not SigningKey.objects.exclude(compromised_since=None).exists()
    assert (names(), LogLeaf.objects.count()) == (old, 3)

    stolen = (tmp_path / "keys.pem").read_bytes()
    revoked(capsys, *old, "--since", since)
    new = names()
    with pytest.raises(CommandError, match="not taken back"):
        call_command("signing_key", "revoke", *old, "--since", isoformat(database_now(env.database)))
    # Somebody puts the former file back.
    (tmp_path / "keys.pem").write_bytes(stolen)
    publish_example(env, name="later")
    heads = TreeHead.objects.count()
    with pytest.raises(CommandError, match="is compromised, so nothing is signed with it"):
        call_command("sign_published")
    assert SkillVersion.objects.get(name="later").signed_at is None
    assert (TreeHead.objects.count(), names()) == (heads, new)
    assert list(SigningKey.objects.filter(until=None).values_list("key_id", flat=True)) == new[2:]
    # An earlier time is told as well, and the file that came back is replaced again.
    earlier = isoformat(database_now(env.database) - timedelta(days=3))
    _code, told = revoked(capsys, *old, "--since", earlier)
    assert {one["compromisedSince"] for one in told["keys"]} == {earlier}
    assert not set(told["newKeys"]) & set(new)
    assert json.loads(LogLeaf.objects.order_by("number").reverse()[0].body)["compromisedSince"] == earlier
    assert sign_published(env).versions == 1


def test_a_run_that_signs_while_its_keys_are_revoked_signs_nothing_more(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remembered_then_revoked(env: WorkerEnv, keys: SigningKeys) -> tuple[SigningKey, SigningKey]:
        rows = remember_keys(env, keys)
        revoke(env, Revocation(ids_of(keys), None, "test", ""), lambda _done, _total: None)
        return rows

    monkeypatch.setattr(signing, "remember_keys", remembered_then_revoked)
    publish_example(env, name="later")
    old = names()
    with pytest.raises(KeyCompromised):
        sign_published(env)
    assert SkillVersion.objects.get(name="later").signed_at is None
    # Nor the log, whose newest head then is one of the new keys.
    stolen, heads = SigningKey.objects.get(key_id=old[0]), TreeHead.objects.count()
    with pytest.raises(KeyCompromised):
        sign_head(env, SigningKeys(Ed25519PrivateKey.generate(), generate_private_key(SECP256R1())), stolen)
    assert TreeHead.objects.count() == heads
    assert TreeHead.objects.order_by("size").reverse()[0].key_id != stolen.pk


def test_a_file_of_keys_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    file, link = tmp_path / "keys.pem", tmp_path / "named.pem"
    first = ids_of(write_keys(file))
    link.symlink_to(file)
    assert replace_keys(link, ["0" * 64])[1] is None
    # A run was killed before it could rename, and another one between the two names of the former file.
    for left in (tmp_path / "keys.pem.new", tmp_path / f"keys.pem.compromised-{min(first)[:16]}"):
        left.hardlink_to(file)
    made, kept = replace_keys(link, first)
    assert link.is_symlink()
    assert kept is not None
    assert ids_of(read_keys(kept)) == first
    assert ids_of(read_keys(file)) == ids_of(made) != first
    assert sorted(one.name for one in tmp_path.iterdir()) == ["keys.pem", kept.name, "named.pem"]
    (tmp_path / "locked").mkdir()
    locked = tmp_path / "locked" / "keys.pem"
    keys = ids_of(write_keys(locked))
    # A folder where the new file would be, because whoever may do everything may write into any folder.
    (tmp_path / "locked" / "keys.pem.new").mkdir()
    with pytest.raises(SigningKeyError, match="could not be replaced by new keys"):
        replace_keys(locked, keys)
    assert ids_of(read_keys(locked)) == keys
    assert sorted(one.name for one in locked.parent.iterdir()) == ["keys.pem", "keys.pem.new"]


def test_environments_that_sign_with_one_file_get_the_same_new_keys(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "shared.pem"
    stolen = ids_of(write_keys(file))
    policy = {"signing_key_file": str(file)}
    settings.VSKILL_ENVIRONMENTS = {
        **{name: {"hosts": [f"{name}.test"], "policy": policy} for name in ("first", "second")},
        "unsigned": {"hosts": ["unsigned.test"]},
    }
    for name in ("first", "second"):
        publish_example(get_environment(name), name="shared")
        sign_published(get_environment(name))
    call_command("signing_key", "revoke", *stolen, "--json")
    first, second, other = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first["newKeys"] == second["newKeys"] == list(ids_of(read_keys(file)))
    assert (first["signedAnew"], second["signedAnew"], other["keys"]) == (1, 1, [])
    # The file was replaced once, for the first of them.
    assert (first["keptFile"] is not None, second["keptFile"]) == (True, None)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["shared.pem", Path(first["keptFile"]).name]
    for name in ("first", "second"):
        kinds = LogLeaf.objects.filter(namespace=name).values_list("kind", flat=True)
        assert sorted(kinds) == ["key-compromised", "key-compromised", "published"]
