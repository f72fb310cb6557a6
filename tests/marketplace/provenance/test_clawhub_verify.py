"""What ``clawhub skill verify`` is told of a signature: what is so, where the registry signs and where it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from marketplace.models import SigningKey, VersionSignature
from marketplace.provenance.signing import sign_published
from tests.marketplace.factories import publish_example
from tests.marketplace.provenance.signing_registry import PUBLIC_URL, signing_with
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)


def signature(query: str = "") -> dict[str, Any]:
    answer = Client().get(f"/api/v1/skills/hello-skill/verify{query}")
    assert answer.status_code == 200
    told: dict[str, Any] = answer.json()["signature"]
    return told


def test_a_registry_without_keys_says_that_it_does_not_sign(env: WorkerEnv) -> None:
    publish_example(env)
    assert signature() == {"status": "unsigned", "reason": "This registry does not sign what it publishes."}


def test_a_version_waits_for_its_signature_and_then_names_it_and_its_key(tmp_path: Path) -> None:
    with signing_with(tmp_path / "keys.pem") as env:
        publish_example(env)
        assert (signature()["status"], "signedAt" in signature()) == ("pending", False)
        sign_published(env)
        publish_example(env, body="Do it better.")
        assert signature()["status"] == "pending"

        first, row = signature("?version=0.0.1"), VersionSignature.objects.select_related("key", "files_key").get()
        assert first["status"] == "signed"
        assert first["signedAt"] == int(row.signed_at.timestamp() * 1000)
        assert (first["keyId"], first["modelSignatureKeyId"]) == (row.key.key_id, row.files_key.key_id)
        fetched = [Client().get(first[name].removeprefix(PUBLIC_URL)) for name in ("statement", "modelSignature")]
        assert [one.content.decode() for one in fetched] == [row.statement, row.files]
        kept = {one["kid"] for one in Client().get(first["keys"].removeprefix(PUBLIC_URL)).json()["keys"]}
        assert {first["keyId"], first["modelSignatureKeyId"]} <= kept


def test_a_signature_by_a_stolen_key_is_not_called_one(tmp_path: Path) -> None:
    with signing_with(tmp_path / "keys.pem") as env:
        publish_example(env)
        sign_published(env)
        row = VersionSignature.objects.select_related("key").get()
        SigningKey.objects.filter(pk=row.key.pk).update(compromised_since=row.signed_at)
        told = signature()
        assert told["status"] == "untrusted"
        assert "statement" not in told
        assert "not trusted" in told["reason"]
