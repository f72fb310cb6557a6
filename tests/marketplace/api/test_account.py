"""What a program learns of the person that it works for."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from marketplace.catalog import rename_skill
from tests.marketplace.factories import publish_example
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.tokens import make_token
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("root", "role"), [(True, "admin"), (False, "user")])
def test_a_program_learns_whose_its_token_is(env: WorkerEnv, root: bool, role: str) -> None:
    user = get_user_model()._default_manager.create_user("ada", is_superuser=root)
    row, token = make_token(env, user, name="laptop", scopes=[Scope.READ, Scope.PUBLISH])
    answer: Any = Client().get("/api/v1/whoami", headers={"Authorization": f"bearer {token}"})
    assert answer.json() == {
        "user": {"handle": "ada", "displayName": "ada", "image": None, "role": role},
        "token": {"name": "laptop", "scopes": ["read", "publish"], "expiresAt": row.expires_at.isoformat()},
    }
    assert answer["Cache-Control"] == "no-store"


def test_a_stranger_is_told_how_to_sign_in(client: Client) -> None:
    answer = client.get("/api/v1/whoami")
    assert answer.status_code == 401
    assert b"clawhub login --token" in answer.content
    assert answer["WWW-Authenticate"].startswith("Bearer ")


def test_a_person_gives_a_skill_one_star_whatever_it_is_called(env: WorkerEnv, client: Client) -> None:
    publish_example(env)

    def asked(method: str, slug: str, *scopes: Scope, name: str = "ada") -> Any:
        user, _new = get_user_model()._default_manager.get_or_create(username=name)
        token = make_token(env, user, name="laptop", scopes=scopes)[1]
        return Client().generic(method, f"/api/v1/stars/{slug}", headers={"Authorization": f"Bearer {token}"})

    def counted() -> int:
        return int(client.get("/api/v1/skills/hello-skill").json()["skill"]["stats"]["stars"])

    assert counted() == 0
    for already in (False, True):
        answer = asked("POST", "hello-skill?ownerHandle=acme", Scope.SUBMIT)
        assert answer.json() == {"ok": True, "starred": True, "alreadyStarred": already}
    asked("POST", "hello-skill", Scope.SUBMIT, name="eve")
    assert counted() == 2
    rename_skill(env, "hello-skill", "hello-there", actor="test", reason="test")
    assert counted() == 2
    for already in (False, True):
        answer = asked("DELETE", "hello-there", Scope.SUBMIT)
        assert answer.json() == {"ok": True, "unstarred": True, "alreadyUnstarred": already}
    assert counted() == 1

    assert asked("POST", "nothing", Scope.SUBMIT).status_code == 404
    refused = asked("POST", "hello-there", Scope.READ)
    assert (refused.status_code, b"one for submit" in refused.content) == (403, True)
    assert client.post("/api/v1/stars/hello-there").status_code == 401
    assert client.get("/api/v1/stars/hello-there").status_code == 405
    assert counted() == 1
