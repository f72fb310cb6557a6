"""The registry HTTP API of Microsoft's apm: versions with digests, archives, and problems in words."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from django.test import Client

from marketplace.catalog import delete_skill, quarantine_version, yank_version
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
PACKAGE = "/api/apm/v1/packages/acme/hello-skill/versions"


def offered(client: Client) -> dict[str, str]:
    """Return the digest of each version that is offered."""
    body: dict[str, Any] = client.get(PACKAGE).json()
    assert all(set(one) == {"version", "digest", "published_at"} for one in body["versions"])
    return {one["version"]: one["digest"] for one in body["versions"]}


def test_each_version_is_offered_with_the_digest_of_what_is_downloaded(env: WorkerEnv, client: Client) -> None:
    for number in ("1.0.0", "1.1.0"):
        publish_example(env, declared_version=number, body=number)
    found = offered(client)
    assert list(found) == ["1.1.0", "1.0.0"]
    for number, digest in found.items():
        archive = client.get(f"{PACKAGE}/{number}/download")
        assert archive["Content-Type"] == "application/zip"
        assert f"sha256:{hashlib.sha256(archive.content).hexdigest()}" == digest
    for owner in ("ACME", "@acme"):
        assert client.get(PACKAGE.replace("acme", owner)).json() == client.get(PACKAGE).json()


def test_what_is_withdrawn_or_has_findings_is_not_offered(env: WorkerEnv, client: Client) -> None:
    for number, verdict in (("1.0.0", "clear"), ("1.1.0", "clear"), ("1.2.0", "clear"), ("1.3.0", "held_high")):
        publish_example(env, declared_version=number, body=number, verdict=verdict)
    yank_version(env, "hello-skill", "1.1.0", actor="test", reason="broken")
    quarantine_version(env, "hello-skill", "1.2.0", actor="test", reason="steals keys")

    assert list(offered(client)) == ["1.0.0"]
    # A lockfile may name it.
    yanked = client.get(f"{PACKAGE}/1.1.0/download")
    assert (yanked.status_code, "broken" in yanked["Warning"]) == (200, True)
    refused = client.get(f"{PACKAGE}/1.2.0/download")
    assert (refused.status_code, refused["Content-Type"]) == (410, "application/problem+json")
    assert "steals keys" in refused.json()["detail"]
    delete_skill(env, "hello-skill", actor="test", reason="gone")
    assert client.get(PACKAGE).status_code == 410


def test_what_is_not_there_is_a_problem_in_words(env: WorkerEnv, client: Client) -> None:
    publish_example(env, declared_version="1.0.0")
    for address in (PACKAGE.replace("acme", "eve"), PACKAGE.replace("hello", "nothing"), f"{PACKAGE}/9.9.9/download"):
        answer = client.get(address)
        assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
        assert answer.json()["status"] == 404
        assert answer.json()["detail"]
    assert client.put(f"{PACKAGE}/1.0.0").status_code == 404
    assert client.put(f"{PACKAGE}/1.0.0/download").status_code == 405
