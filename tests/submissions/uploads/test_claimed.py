"""An account uploads for a publisher that it has claimed, and withdraws what that one has, while it has the claim."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client, override_settings

from marketplace.models import SkillEntry
from marketplace.ownership.claims import Proof, begin, end, grant, owner_claim, prove
from submissions.models import SubmissionEntry, SubmissionTransition
from submissions.store.transitions import submission_namespace
from tests.marketplace.factories import publish_example
from tests.submissions.front_door import drain
from tests.submissions.uploads.uploading import FILES, SKILLS, publish_form, token_for
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

CHANGED = {**FILES, "new.txt": b"new"}


def account(env: WorkerEnv, name: str) -> tuple[Any, str]:
    token = token_for(env, name)
    return get_user_model()._default_manager.get(username=name), token


def delete(token: str, slug: str) -> int:
    return Client().delete(f"{SKILLS}/{slug}", headers={"Authorization": f"Bearer {token}"}).status_code


def test_a_claim_lets_its_account_upload_for_the_publisher_until_it_ends(env: WorkerEnv) -> None:
    publish_example(env, name="from-git")
    (ada, token), (eve, other) = account(env, "ada"), account(env, "eve")
    begin(env, ada, "https://github.com/acme/skills")
    assert publish_form(token, ownerHandle="acme").status_code == 403
    claim = grant(env, ada, "github.com/acme", "acme", actor="root", reason="known")
    assert publish_form(other, ownerHandle="acme").status_code == 403

    assert publish_form(token, ownerHandle="@Acme").status_code == 202
    async_to_sync(drain)(env)

    skill = SkillEntry.objects.get(slug="pdf-tools")
    assert (skill.publisher, skill.publisher_handle) == ("github.com/acme", "acme")
    assert Client().get("/api/v1/download?slug=pdf-tools&ownerHandle=acme").status_code == 200
    # What comes from a repository is published by a push, and what the publisher has is not the account's own.
    assert publish_form(token, ownerHandle="acme", slug="from-git").status_code == 409
    assert publish_form(token, CHANGED, version="1.0.1").status_code == 409

    end(env, claim, actor="root", reason="left")
    assert publish_form(token, CHANGED, version="1.0.1", ownerHandle="acme").status_code == 403
    assert (delete(token, "pdf-tools"), delete(token, "from-git")) == (403, 403)
    grant(env, eve, "github.com/acme", "acme", actor="root", reason="known")
    assert publish_form(other, CHANGED, version="1.0.1", ownerHandle="acme").status_code == 202
    async_to_sync(drain)(env)
    assert Client().get(f"{SKILLS}/pdf-tools").json()["latestVersion"]["version"] == "1.0.1"
    assert (delete(other, "pdf-tools"), delete(other, "from-git")) == (200, 200)
    assert Client().get("/api/v1/download?slug=from-git").status_code == 410


def test_a_reserved_name_needs_a_claim_that_an_operator_granted(env: WorkerEnv) -> None:
    ada, token = account(env, "ada")
    options: dict[str, Any] = settings.VSKILL_ENVIRONMENTS["default"]
    policy = {**options.get("policy", {}), "reserved_names": {"pdf-*": "github.com/acme"}}
    with override_settings(VSKILL_ENVIRONMENTS={"default": {**options, "policy": policy}}):
        claim = begin(env, ada, "https://github.com/acme/skills")
        prove(env, claim, Proof.BRANCH, "a branch of a repository that ada was invited to")
        refused = publish_form(token, ownerHandle="acme")
        assert refused.status_code == 403
        assert "is reserved for github.com/acme" in refused.content.decode()

        end(env, owner_claim(env, "github.com/acme") or claim, actor="root", reason="granted instead")
        grant(env, ada, "github.com/acme", "acme", actor="root", reason="known")
        assert publish_form(token, ownerHandle="acme").status_code == 202


@pytest.mark.parametrize("by_number", [True, False])
def test_what_was_uploaded_under_a_claim_is_held_once_the_claim_has_ended(env: WorkerEnv, *, by_number: bool) -> None:
    (ada, token), (eve, _other) = account(env, "ada"), account(env, "eve")
    claim = grant(env, ada, "github.com/acme", "acme", actor="root", reason="known")
    assert publish_form(token, ownerHandle="acme").status_code == 202
    row = SubmissionEntry.objects.get()
    value = json.loads(row.value)
    assert value["uploadAccount"] == ada.pk
    if not by_number:
        # As submissions were written before they had the number.
        del value["uploadAccount"]
        submission_namespace(env).put_sync(row.key, value)
    end(env, claim, actor="root", reason="left us")
    grant(env, eve, "github.com/acme", "acme", actor="root", reason="her successor")
    async_to_sync(drain)(env)

    assert not SkillEntry.objects.exists()
    row.refresh_from_db()
    assert row.state == "ON_HOLD"
    last = SubmissionTransition.objects.order_by("pk").last()
    assert last is not None
    assert "does not have the claim of github.com/acme any more" in last.reason
