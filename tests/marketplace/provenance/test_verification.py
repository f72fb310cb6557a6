"""Whatever is changed behind the registry's back is found, by the version that it is about or by the whole store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models import F
from django.test import Client

from marketplace.models import ArchiveBlob, LogLeaf, LogNode, SigningKey, SkillVersion, TreeHead, VersionSignature
from marketplace.provenance.keys import public_pem, read_keys, write_keys
from marketplace.provenance.known_keys import remember_keys
from marketplace.provenance.signing import sign_published
from marketplace.provenance.statements import signature_of
from marketplace.provenance.verification import verify_version
from marketplace.signing_checks import check_signing_keys
from submissions.recovery.problems import Kind
from submissions.recovery.verify_store import verify_store
from tests.marketplace.factories import publish_example
from tests.marketplace.provenance.signing_registry import signing_with
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)


class _Undo(Exception):
    """Ends a transaction."""


@contextmanager
def undone() -> Iterator[None]:
    """Take back all that the body writes."""
    try:
        with transaction.atomic():
            yield
            raise _Undo
    except _Undo:
        return


def broken(env: WorkerEnv, **options: Any) -> set[str]:
    version = SkillVersion.objects.select_related("skill").get(name="hello-skill")
    return {one.name for one in verify_version(env, version, **options) if one.holds is not True}


def signed_by(env: WorkerEnv, key_file: Path, **changes: Any) -> None:
    """Sign a version anew with the keys of a file, after ``changes`` of it that nobody verified."""
    SkillVersion.objects.filter(name="hello-skill").update(**changes)
    keys = read_keys(key_file)
    made = signature_of(env, SkillVersion.objects.get(name="hello-skill"), keys, remember_keys(env, keys))
    VersionSignature.objects.filter(version__name="hello-skill").update(
        statement=made.statement, key=made.key, files=made.files, files_key=made.files_key
    )


def test_each_change_behind_the_back_of_the_registry_is_found(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "keys.pem", tmp_path / "stolen.pem"
    with signing_with(mine) as env:
        for name in ("first", "hello-skill", "third", "last"):
            publish_example(env, name=name, verdict="held")
        sign_published(env)
        assert broken(env) == set()
        version = SkillVersion.objects.get(name="hello-skill")
        of_version = VersionSignature.objects.filter(version=version)
        leaf = LogLeaf.objects.filter(version_number=version.pk)
        manifest = [{**version.manifest[0], "sha256": "0" * 64}, *version.manifest[1:]]
        # A statement about another version, rightly signed.
        other = VersionSignature.objects.get(version__name="first")
        changes: list[tuple[Callable[[], Any], set[str]]] = [
            (lambda: ArchiveBlob.objects.filter(sha256=version.zip_sha256).update(content=b"PK"), {"archives"}),
            (lambda: SkillVersion.objects.update(verdict="clear"), {"statement", "log"}),
            (lambda: SkillVersion.objects.update(commit_sha="0" * 40), {"statement"}),
            (lambda: SkillVersion.objects.update(engines=[]), {"statement"}),
            (lambda: SkillVersion.objects.update(manifest=manifest), {"archives", "content", "files"}),
            (
                lambda: SkillVersion.objects.filter(pk=version.pk).update(content_hash="0" * 64),
                {"content", "statement", "log"},
            ),
            (lambda: of_version.update(statement=other.statement), {"statement"}),
            (lambda: of_version.update(files=other.files), {"files"}),
            (lambda: of_version.update(statement="[]", files="{}"), {"statement", "files"}),
            (lambda: of_version.delete(), {"statement", "files"}),
            (lambda: leaf.update(body=leaf.get().body.replace("held", "clear")), {"log"}),
            (lambda: leaf.update(body=leaf.get().body.replace('"at":"2', '"at":"3')), {"log"}),
            (lambda: leaf.delete(), {"log"}),
            (lambda: LogNode.objects.update(node_hash="0" * 64), {"log"}),
            (lambda: TreeHead.objects.update(note=F("root_hash")), {"log"}),
            (lambda: SigningKey.objects.update(public_key="none"), {"statement", "files", "log"}),
        ]
        for change, found in changes:
            with undone():
                change()
                assert broken(env) == found
        assert broken(env) == set()
        # Who writes the database has keys of their own in it, and is found by those who kept the right ones.
        keys = read_keys(mine)
        kept = {
            row.key_id: key
            for key in (keys.statements.public_key(), keys.files.public_key())
            for row in SigningKey.objects.filter(public_key=public_pem(key))
        }
        assert broken(env, trusted=kept) == set()
        write_keys(theirs)
        with undone():
            signed_by(env, theirs, verdict="clear")
            assert broken(env) == {"log"}
            assert broken(env, trusted=kept) == {"statement", "files", "log"}


def test_the_command_says_what_holds_and_ends_with_a_code_for_it(
    env: WorkerEnv, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(*words: str) -> tuple[int, dict[str, Any]]:
        try:
            call_command("verify_version", "hello-skill", "0.0.1", "--json", *words)
            code = 0
        except SystemExit as end:
            code = int(str(end.code))
        return code, {one["check"]: one["holds"] for one in json.loads(capsys.readouterr().out)["checks"]}

    publish_example(env)
    unsigned = {"archives": True, "content": True, "statement": None, "files": None, "log": None}
    assert ended() == (3, unsigned)
    with pytest.raises(CommandError, match="has no version '9'"):
        call_command("verify_version", "hello-skill", "9")
    with signing_with(tmp_path / "keys.pem"):
        call_command("sign_published")
        assert "1 versions signed" in capsys.readouterr().out
        assert ended() == (0, dict.fromkeys(unsigned, True))
        call_command("signing_key", "list", "--json")
        pems = []
        for one in json.loads(capsys.readouterr().out)["keys"]:
            pems.append(tmp_path / f"{one['keyId']}.pem")
            pems[-1].write_text(SigningKey.objects.get(key_id=one["keyId"]).public_key)
        assert ended(*(word for pem in pems for word in ("--public-key", str(pem))))[0] == 0
        assert ended("--public-key", str(pems[0]))[0] == 2
        SkillVersion.objects.update(verdict="notes")
        assert ended()[0] == 2
        call_command("sign_published", "-v", "0")
        assert capsys.readouterr().out == ""


def test_verify_store_finds_what_stayed_unsigned_and_a_log_that_was_changed(tmp_path: Path) -> None:
    def problems(env: WorkerEnv, **options: Any) -> list[tuple[Kind, bool]]:
        report = async_to_sync(verify_store)(env, **options)
        return [(one.kind, one.repaired) for one in report.problems if one.kind in (Kind.UNSIGNED, Kind.LOG)]

    with signing_with(tmp_path / "keys.pem") as env:
        for number in range(5):
            publish_example(env, name=f"skill-{number}")
        assert problems(env) == []
        SkillVersion.objects.update(created_at=F("created_at") - timedelta(hours=2))
        assert problems(env) == [(Kind.UNSIGNED, False)]
        assert problems(env, repair=True) == [(Kind.UNSIGNED, True)]
        assert problems(env) == []
        leaf, note = LogLeaf.objects.get(number=2), TreeHead.objects.get().note
        for change, back in (
            (lambda: TreeHead.objects.update(note="none"), lambda: TreeHead.objects.update(note=note)),
            (lambda: LogLeaf.objects.filter(number=2).update(body="{}"), leaf.save),
            (lambda: LogLeaf.objects.filter(number=2).delete(), lambda: leaf.save(force_insert=True)),
        ):
            change()
            found = problems(env, repair=True)
            assert found
            assert set(found) == {(Kind.LOG, False)}
            back()
        assert problems(env) == []


def test_keys_are_made_once_and_check_names_files_that_cannot_be_used_or_that_others_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], client: Client
) -> None:
    path = tmp_path / "keys.pem"
    call_command("signing_key", "create", "--to", str(path))
    text = path.read_text()
    said = capsys.readouterr().out
    assert path.stat().st_mode & 0o777 == 0o600
    assert "PRIVATE" not in said
    with pytest.raises(CommandError, match="File exists"):
        call_command("signing_key", "create", "--to", str(path))
    with pytest.raises(CommandError, match="No such file"):
        call_command("signing_key", "create", "--to", str(tmp_path / "none" / "keys.pem"))
    assert path.read_text() == text
    with signing_with(path) as env:
        assert check_signing_keys(None) == []
        path.chmod(0o640)
        assert [one.id for one in check_signing_keys(None)] == ["marketplace.W001"]
        path.chmod(0o600)
        sign_published(env)
        for wrong in ("", text.partition("-----END")[0], text + text, text.replace("M", "N")):
            path.write_text(wrong)
            [problem] = check_signing_keys(None)
            assert problem.id == "marketplace.W002"
            assert not any(line in problem.msg for line in text.splitlines() if line)
            publish_example(env, name=f"skill-{len(wrong)}")
            with pytest.raises(CommandError, match="Nothing was signed; the log is kept"):
                call_command("sign_published")
        path.unlink()
        assert [one.id for one in check_signing_keys(None)] == ["marketplace.W002"]
    with signing_with(path) as env:
        # What was published meanwhile is signed with the new keys.
        sign_published(env)
        assert not SkillVersion.objects.filter(signed_at=None).exists()
        assert len(client.get("/.well-known/vskill-keys.json").json()["keys"]) == 4
