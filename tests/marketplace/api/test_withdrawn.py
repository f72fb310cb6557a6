"""What clients are told about skills and versions that were withdrawn."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from marketplace.catalog import delete_skill, quarantine_skill, quarantine_version, yank_version
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
WHO = {"actor": "test", "reason": "steals keys\u202e"}
SAID = "The reason given: steals keys"


def updates(client: Client, version: str) -> dict[str, Any]:
    asked = {"skills": [{"name": "hello-skill", "currentVersion": version}]}
    answer = client.post("/api/v1/skills/check-updates", asked, content_type="application/json")
    found: dict[str, Any] = answer.json()["results"][0]
    return found


@pytest.mark.parametrize("withhold", [quarantine_skill, delete_skill])
def test_a_withheld_skill_is_gone_with_the_reason_in_every_form(client: Client, env: WorkerEnv, withhold: Any) -> None:
    publish_example(env, declared_version="1.0.0")
    withhold(env, "hello-skill", **WHO)

    install = client.get("/api/v1/skills/hello-skill/install")
    body = install.json()
    assert (install.status_code, body["ok"], body["status"]) == (410, False, 410)
    assert SAID in body["message"]
    assert "\u202e" not in body["message"]
    for address in (
        "/api/v1/download?slug=hello-skill&version=1.0.0",
        "/api/v1/skills/hello-skill/versions/1.0.0",
        "/api/v1/skills/hello-skill/verify",
        "/skills/hello-skill/.well-known/agent-skills/index.json",
        "/skills/hello-skill/download/1.0.0.tar.gz",
    ):
        answer = client.get(address)
        assert (answer.status_code, answer.headers["Content-Type"]) == (410, "text/plain; charset=utf-8")
        assert SAID in answer.content.decode()
    detail = client.get("/api/v1/skills/hello-skill").json()
    assert (detail["latestVersion"], detail["blocked"]) == (None, True)
    assert SAID in detail["skill"]["summary"]
    told = updates(client, "1.0.0")
    assert (told["latest"], told["withdrawn"], told["updateAvailable"]) == (None, True, False)
    assert SAID in told["diffSummary"]


@pytest.mark.parametrize("withdraw", [yank_version, quarantine_version])
def test_a_skill_without_a_version_on_offer_says_why(client: Client, env: WorkerEnv, withdraw: Any) -> None:
    publish_example(env, declared_version="1.0.0")
    withdraw(env, "hello-skill", "1.0.0", **WHO)

    install = client.get("/api/v1/skills/hello-skill/install")
    assert (install.status_code, install.json()["ok"]) == (410, False)
    assert SAID in install.json()["message"]
    for address in ("/skills/hello-skill/.well-known/agent-skills/index.json", "/api/v1/skills/hello-skill/verify"):
        answer = client.get(address)
        assert (answer.status_code, SAID in answer.content.decode()) == (410, True)
    assert SAID in client.get("/api/v1/skills/hello-skill").json()["skill"]["summary"]
    assert updates(client, "1.0.0")["certTier"] == ""


def test_a_version_in_quarantine_is_gone_with_the_reason(client: Client, env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    publish_example(env, declared_version="2.0.0", body="Second.")
    quarantine_version(env, "hello-skill", "1.0.0", **WHO)

    for address in ("/api/v1/download?slug=hello-skill&version=1.0.0", "/api/v1/skills/hello-skill/versions/1.0.0"):
        answer = client.get(address)
        assert (answer.status_code, SAID in answer.content.decode()) == (410, True)
    assert client.get("/api/v1/skills/hello-skill/versions/3.0.0").status_code == 404
    assert client.get("/api/v1/skills/hello-skill/versions/2.0.0").status_code == 200
    page = client.get("/skills/hello-skill?version=1.0.0")
    assert (page.status_code, SAID in page.content.decode()) == (404, True)


@pytest.mark.parametrize("withhold", [quarantine_skill, delete_skill])
def test_the_page_of_a_withheld_skill_says_why_and_nothing_of_its_author(
    client: Client, env: WorkerEnv, withhold: Any
) -> None:
    publish_example(env, declared_version="1.0.0", description="Totally safe")
    withhold(env, "hello-skill", **WHO)
    for address in ("/skills/hello-skill", "/skills/hello-skill/scan", "/skills/hello-skill/files/SKILL.md"):
        answer = client.get(address)
        shown = answer.content.decode()
        assert (answer.status_code, SAID in shown, "Totally safe" in shown) == (404, True, False)


def test_a_yanked_version_carries_its_reason_where_clients_print(client: Client, env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    publish_example(env, declared_version="2.0.0", body="Second.")
    yank_version(env, "hello-skill", "1.0.0", **WHO)

    exact = client.get("/api/v1/skills/hello-skill/versions/1.0.0").json()["version"]
    assert exact["changelog"].startswith("Version 1.0.0 was withdrawn (yanked). The reason given: steals keys")
    listed = client.get("/api/v1/skills/hello-skill/versions").json()
    for summaries in (
        [one["changelog"] for one in listed["items"]],
        [one["diffSummary"] for one in listed["versions"]],
    ):
        assert [SAID in summary for summary in summaries] == [False, True]
    told = updates(client, "1.0.0")
    assert (told["latest"], told["updateAvailable"], told["withdrawn"]) == ("2.0.0", True, True)
    assert SAID in told["diffSummary"]
    assert "withdrawn" not in updates(client, "2.0.0")
