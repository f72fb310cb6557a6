"""What a program learns of the person that it works for."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

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
