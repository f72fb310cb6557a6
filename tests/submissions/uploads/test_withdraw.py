"""What was uploaded is withdrawn and brought back by its account and by operators, and by nobody else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from marketplace.catalog import delete_skill, quarantine_skill, yank_version
from marketplace.models import HistoryEvent
from tests.marketplace.factories import publish_example
from tests.submissions.front_door import drain
from tests.submissions.uploads.uploading import FILES, SKILLS, publish_form, token_for
from vskill.access_tokens.scopes import Scope
from vskill.accounts.roles import Role
from vskill.environments import WorkerEnv
from vskill.models import RoleGrant

pytestmark = pytest.mark.django_db(transaction=True)

SKILL = f"{SKILLS}/pdf-tools"


@pytest.fixture
def ada(env: WorkerEnv) -> str:
    """Return a token of the account that has uploaded two versions of a skill."""
    token = token_for(env)
    for number in ("1.0.0", "1.1.0"):
        assert publish_form(token, {**FILES, "number.txt": number.encode()}, version=number).status_code == 202
        async_to_sync(drain)(env)
    return token


def operator(env: WorkerEnv, *scopes: Scope, role: Role = Role.OPERATOR) -> str:
    token = token_for(env, f"the-{role}", *scopes)
    user = get_user_model()._default_manager.get(username=f"the-{role}")
    RoleGrant.objects.get_or_create(
        user=user,
        environment=env.name,
        defaults={"role": role, "granted_by": "root", "granted_at": timezone.now()},
    )
    return token


def send(token: str | None, method: str, path: str, **body: Any) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    text = json.dumps(body) if body else ""
    answer: Any = Client().generic(method, path, text, content_type="application/json", headers=headers)
    assert answer.status_code != 200 or answer.json() == {"ok": True}
    assert answer.status_code == 200 or answer.headers["Content-Type"].startswith("text/plain")
    return int(answer.status_code)


def shown() -> tuple[int, str]:
    """Return the status of the archive, and the latest version that clients are told."""
    client = Client()
    detail: Any = client.get(SKILL).json()
    latest = detail["latestVersion"]
    return client.get("/api/v1/download?slug=pdf-tools").status_code, latest["version"] if latest else ""


def test_its_account_withdraws_a_skill_and_brings_it_back(env: WorkerEnv, ada: str) -> None:
    for _again in range(2):
        assert send(ada, "DELETE", SKILL, reason="renamed upstream", ownerHandle="ada") == 200
    assert shown() == (410, "")
    assert "renamed upstream" in Client().get("/api/v1/download?slug=pdf-tools").content.decode()
    assert publish_form(ada, {**FILES, "x": b"x"}, version="2.0.0").status_code == 409
    assert publish_form(token_for(env, "eve"), version="2.0.0").status_code == 409

    for _again in range(2):
        assert send(ada, "POST", f"{SKILL}/undelete") == 200
    assert shown() == (200, "1.1.0")
    told = HistoryEvent.objects.order_by("pk").values_list("action", "actor", "reason")
    assert list(told)[-2:] == [
        ("deleted", "ada", "renamed upstream"),
        ("restored", "ada", "Its publisher brought it back."),
    ]


def test_its_account_withdraws_one_version_and_brings_it_back(ada: str) -> None:
    for _again in range(2):
        assert send(ada, "DELETE", f"{SKILL}/versions/1.1.0", version="1.1.0", ownerHandle="ada") == 200
    assert shown() == (200, "1.0.0")
    assert publish_form(ada, version="1.1.0").status_code == 409
    assert send(ada, "POST", f"{SKILL}/versions/1.1.0/restore", reason="a \0 in it") == 200
    assert shown() == (200, "1.1.0")
    assert send(ada, "DELETE", f"{SKILL}/versions/9.9.9") == 404
    assert HistoryEvent.objects.filter(action__in=("yanked", "unyanked")).count() == 2


def test_nobody_else_does(env: WorkerEnv, ada: str) -> None:
    publish_example(env)
    assert ada
    calls = (
        ("DELETE", SKILL),
        ("DELETE", f"{SKILL}/versions/1.1.0"),
        ("POST", f"{SKILL}/undelete"),
        ("POST", f"{SKILL}/versions/1.1.0/restore"),
        ("DELETE", f"{SKILLS}/hello-skill"),
        ("POST", f"{SKILLS}/hello-skill/undelete"),
    )
    tokens = {
        None: 401,
        token_for(env, "eve"): 403,
        token_for(env, "eve", Scope.OPERATE): 403,
        operator(env, Scope.PUBLISH): 403,
        operator(env, Scope.OPERATE, role=Role.REVIEWER): 403,
    }
    before = HistoryEvent.objects.count()
    for method, path in calls:
        for token, status in tokens.items():
            assert send(token, method, path) == status, (method, path)
        if "hello" not in path:
            assert send(token_for(env, "ada", Scope.SUBMIT, Scope.READ), method, path) == 403
    assert send(ada, "DELETE", f"{SKILLS}/nothing") == 404
    assert send(ada, "DELETE", SKILL, ownerHandle="acme") == 404
    assert send(ada, "DELETE", SKILL, reason=7) == 400
    assert HistoryEvent.objects.count() == before
    assert shown() == (200, "1.1.0")


def test_what_operators_withdrew_its_account_does_not_bring_back(env: WorkerEnv, ada: str) -> None:
    operates = operator(env, Scope.OPERATE)
    for withdraw in (delete_skill, quarantine_skill):
        withdraw(env, "pdf-tools", actor="root", reason="steals keys")
        assert send(ada, "POST", f"{SKILL}/undelete") == 403
        assert shown() == (410, "")
        assert send(operates, "POST", f"{SKILL}/undelete") == 200
        assert shown() == (200, "1.1.0")
    quarantine_skill(env, "pdf-tools", actor="root", reason="steals keys")
    # Otherwise it would be deleted by its account, which could bring it back.
    assert send(ada, "DELETE", SKILL) == 409
    assert send(operates, "POST", f"{SKILL}/undelete") == 200
    yank_version(env, "pdf-tools", "1.1.0", actor="root", reason="broken")
    assert send(ada, "DELETE", f"{SKILL}/versions/1.1.0") == 200
    assert send(ada, "POST", f"{SKILL}/versions/1.1.0/restore") == 403
    assert send(operates, "POST", f"{SKILL}/versions/1.1.0/restore") == 200
    assert send(operates, "DELETE", SKILL) == 200
    assert send(ada, "DELETE", SKILL) == 200
    assert send(ada, "POST", f"{SKILL}/undelete") == 403


def test_other_addresses_below_skills_stay_what_they_are(env: WorkerEnv) -> None:
    publish_example(env, declared_version="1.0.0")
    client = Client()
    assert "results" in client.get(f"{SKILLS}/search?q=hello").json()
    assert client.get(f"{SKILLS}/hello-skill/versions/compare?from=1.0.0&to=1.0.0").status_code == 200
    assert client.get(f"{SKILLS}/hello-skill/versions/1.0.0").json()["version"]["version"] == "1.0.0"
    assert client.get(f"{SKILLS}/hello-skill").json()["skill"]["slug"] == "hello-skill"
    assert client.options(f"{SKILLS}/hello-skill")["Allow"] == "GET, HEAD, DELETE, OPTIONS"


def test_what_an_operator_withdraws_after_its_account_stays_withdrawn(env: WorkerEnv, ada: str) -> None:
    operates = operator(env, Scope.OPERATE)
    for path, back, action in (
        (f"{SKILL}/versions/1.1.0", f"{SKILL}/versions/1.1.0/restore", "yanked"),
        (SKILL, f"{SKILL}/undelete", "deleted"),
    ):
        assert send(ada, "DELETE", path, reason="a mistake") == 200
        for _again in range(2):
            assert send(operates, "DELETE", path, reason="steals keys") == 200
        assert send(ada, "DELETE", path) == 200
        assert send(ada, "POST", back) == 403
        told = HistoryEvent.objects.filter(action=action).order_by("pk").values_list("actor", "reason")
        assert list(told) == [("ada", "a mistake"), ("the-operator", "steals keys")]
    assert shown()[0] == 410
    assert "steals keys" in Client().get("/api/v1/download?slug=pdf-tools").content.decode()
    assert send(operates, "POST", f"{SKILL}/undelete") == 200
    assert shown() == (200, "1.0.0")
