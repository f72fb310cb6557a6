"""An upload goes the way of a repository: accepted with its true state, checked, published as it was sent."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from marketplace.catalog import quarantine_version
from marketplace.models import SkillEntry, SkillVersion
from marketplace.provenance.signing import sign_published
from marketplace.provenance.verification import verify_version
from submissions.models import QueueMessage, StagedFile, SubmissionEntry, UploadedBundle
from submissions.operations import dequeue
from submissions.states import State
from tests.marketplace.provenance.signing_registry import signing_with
from tests.submissions.front_door import EVIL, drain
from tests.submissions.uploads.uploading import FILES, SKILLS, publish_form, publish_json, token_for
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

Publish = Callable[..., Any]


def work_off(env: WorkerEnv) -> None:
    async_to_sync(drain)(env)


@pytest.mark.parametrize("publish", [publish_form, publish_json], ids=["one request", "each file ahead"])
def test_an_upload_is_pending_until_it_is_checked_and_then_given_to_clients(env: WorkerEnv, publish: Publish) -> None:
    token = token_for(env)

    answer = publish(token)

    body = answer.json()
    assert (answer.status_code, body["ok"], body["publicationStatus"]) == (202, True, "pending")
    assert (body["slug"], body["version"]) == ("pdf-tools", "1.0.0")
    client = Client()
    assert client.get(f"{SKILLS}/pdf-tools").status_code == 404
    shown = client.get(body["statusUrl"].removeprefix("http://testserver"))
    assert b"pdf-tools" in shown.content
    work_off(env)

    detail = client.get(f"{SKILLS}/pdf-tools").json()
    assert detail["latestVersion"]["version"] == "1.0.0"
    assert detail["owner"]["handle"] == "ada.account"
    zipped = client.get("/api/v1/download?slug=pdf-tools&ownerHandle=ada&version=1.0.0").content
    with zipfile.ZipFile(io.BytesIO(zipped)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == FILES
    page = client.get("/skills/pdf-tools").content.decode()
    assert "Uploaded as" in page
    assert "Its health" not in page
    assert "upload://account/ada/pdf-tools" in page
    assert client.get("/publishers/ada.account").status_code == 200


@pytest.mark.parametrize("publish", [publish_form, publish_json], ids=["one request", "each file ahead"])
def test_the_same_upload_again_is_the_same_submission_and_later_the_same_version(
    env: WorkerEnv, publish: Publish
) -> None:
    token = token_for(env)
    first, second = publish(token).json(), publish(token)
    assert (second.status_code, second.json()["versionId"]) == (202, first["versionId"])
    work_off(env)

    again = publish(token)

    assert (again.status_code, again.json()["publicationStatus"]) == (200, "published")
    assert again.json()["versionId"] == first["versionId"]
    work_off(env)
    assert SubmissionEntry.objects.count() == SkillVersion.objects.count() == UploadedBundle.objects.count() == 1
    assert QueueMessage.objects.count() == 0


def test_what_is_signed_of_an_upload_names_it_by_its_content_and_claims_no_commit(tmp_path: Path) -> None:
    with signing_with(tmp_path / "keys.pem") as env:
        publish_form(token_for(env))
        work_off(env)
        sign_published(env)

        version = SkillVersion.objects.select_related("skill").get()
        assert [one for one in verify_version(env, version) if one.holds is not True] == []
        envelope = json.loads(version.signature.statement)
        source = json.loads(base64.b64decode(envelope["payload"]))["predicate"]["source"]
    assert source["uri"] == "upload://account/ada/pdf-tools"
    assert source["digest"] == {"sha256": version.content_hash}
    detail = Client().get(f"{SKILLS}/pdf-tools").json()
    assert detail["skill"]["provenanceVerified"] is False
    assert detail["latestVersion"]["changelog"].startswith("Published from upload")


def test_each_version_has_the_number_that_its_author_chose(env: WorkerEnv) -> None:
    token = token_for(env)
    for number in ("1.0.0", "1.1.0", "2.0.0-rc.1"):
        changed = {**FILES, "data/number.txt": number.encode()}
        assert publish_form(token, changed, version=number).status_code == 202
        work_off(env)

    rows = SkillVersion.objects.order_by("ordinal")
    assert list(rows.values_list("version", flat=True)) == ["1.0.0", "1.1.0", "2.0.0-rc.1"]
    asked = {"slug": "pdf-tools", "ownerHandle": "ada", "hash": rows[0].fingerprint}
    resolved = Client().get("/api/v1/resolve", asked)
    assert resolved.json()["match"] == {"version": "1.0.0"}


def test_what_the_checks_hold_is_not_public_and_stays_pending(env: WorkerEnv) -> None:
    token = token_for(env)
    publish_form(token, {"SKILL.md": EVIL.encode()}, slug="key-helper")
    work_off(env)

    entry = SubmissionEntry.objects.get()
    assert entry.state == State.ON_HOLD
    assert not SkillEntry.objects.exists()
    again = publish_form(token, {"SKILL.md": EVIL.encode()}, slug="key-helper")
    assert (again.status_code, again.json()["publicationStatus"]) == (202, "pending")
    other = publish_form(token, {"SKILL.md": EVIL.encode() + b"\n"}, slug="key-helper")
    assert (other.status_code, b"waits for a reviewer" in other.content) == (409, True)
    assert UploadedBundle.objects.count() == 1


def test_an_upload_that_was_taken_out_can_be_tried_again(env: WorkerEnv) -> None:
    token = token_for(env)
    first = publish_form(token).json()["versionId"]
    dequeue(env, first, actor="root", reason="not now")

    second = publish_form(token)

    assert second.status_code == 202
    assert second.json()["versionId"] != first
    work_off(env)
    assert SkillVersion.objects.get().version == "1.0.0"


def test_the_slug_may_be_another_one_than_the_name_in_the_skill(env: WorkerEnv) -> None:
    publish_form(token_for(env), slug="ada-pdf")
    work_off(env)
    assert SkillEntry.objects.get(slug="ada-pdf").name == "pdf-tools"


def test_an_account_of_a_former_name_keeps_what_it_uploaded(env: WorkerEnv) -> None:
    publish_form(token_for(env))
    work_off(env)
    users = get_user_model()._default_manager
    users.filter(username="ada").update(username="lovelace")

    answer = publish_form(token_for(env, "ada"), version="1.0.1")

    assert answer.status_code == 409
    assert b"belongs to @ada.account" in answer.content
    renamed = publish_form(token_for(env, "lovelace"), {**FILES, "new.txt": b"new"}, version="1.0.1")
    assert renamed.status_code == 202


def test_a_name_that_a_skill_got_meanwhile_is_not_taken_from_it(env: WorkerEnv) -> None:
    publish_form(token_for(env, "ada"))
    publish_form(token_for(env, "eve"), {**FILES, "other.txt": b"other"})
    work_off(env)

    assert SkillEntry.objects.count() == 1
    held = SubmissionEntry.objects.get(state=State.ON_HOLD)
    assert "another skill was published as pdf-tools meanwhile" in held.value


def test_files_that_were_sent_ahead_are_removed_after_a_day(env: WorkerEnv) -> None:
    publish_json(token_for(env))
    call_command("clean_scratch", verbosity=0)
    assert StagedFile.objects.count() == len(FILES)
    StagedFile.objects.update(created_at=timezone.now() - timedelta(days=2))
    call_command("clean_scratch", verbosity=0)
    assert StagedFile.objects.count() == 0
    work_off(env)
    assert SkillVersion.objects.count() == 1


def test_what_an_uploader_says_of_a_version_is_shown_as_its_words_and_as_text(env: WorkerEnv) -> None:
    token = token_for(env)
    said = f"Reads <b>tables</b>\n\nand \u202efiles. {token} " + "x" * 5000
    publish_form(token, changelog=said)
    work_off(env)
    publish_json(token, {**FILES, "notes.txt": b"x"}, version="1.1.0")
    work_off(env)

    kept = SkillVersion.objects.get(version="1.0.0").changelog
    assert kept.startswith("Reads <b>tables</b> and \\u{202e}files. ")
    assert (len(kept), kept[-1], token in kept) == (1000, "…", False)
    page = Client().get("/skills/pdf-tools").content.decode()
    assert page.count("In the words of its uploader:") == 1
    assert "Reads &lt;b&gt;tables&lt;/b&gt; and" in page
    listed = {one["version"]: one for one in Client().get(f"{SKILLS}/pdf-tools/versions").json()["items"]}
    assert listed["1.0.0"]["changelog"].startswith("Reads <b>tables</b> and ")
    assert [listed[one]["changelogSource"] for one in ("1.0.0", "1.1.0")] == ["user", "auto"]
    assert listed["1.1.0"]["changelog"].startswith("Published from ")

    # The same version again changes nothing, and of what is withheld not a word is shown.
    assert publish_form(token, changelog="Other words").status_code == 200
    assert SkillVersion.objects.get(version="1.0.0").changelog == kept
    quarantine_version(env, "pdf-tools", "1.0.0", actor="op", reason="bad")
    assert "In the words of its uploader:" not in Client().get("/skills/pdf-tools").content.decode()


@pytest.mark.parametrize("publish", [publish_form, publish_json], ids=["one request", "each file ahead"])
def test_what_is_no_text_says_nothing_of_a_version(env: WorkerEnv, publish: Publish) -> None:
    for changelog in (7, ["x"], "a\0b"):
        answer = publish(token_for(env), changelog=changelog)
        assert (answer.status_code, b"'changelog' is no text" in answer.content) == (400, True)
    assert not UploadedBundle.objects.exists()
