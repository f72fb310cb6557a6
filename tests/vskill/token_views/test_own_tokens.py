"""A person makes tokens, sees them, and revokes them; nobody else does."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.token_form import FORM
from vskill.access_tokens.tokens import make_token
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "/account/tokens"


def test_a_token_is_shown_once_and_ends_when_its_owner_says_so(env: WorkerEnv, client: Client) -> None:
    ada, eve = (get_user_model()._default_manager.create_user(name) for name in ("ada", "eve"))
    of_eve = make_token(env, eve, name="of eve", scopes=[Scope.READ])[0]
    client.force_login(ada)
    made = client.post(PAGE, {"name": "<laptop>", "scope": ["submit", "publish"], "days": "7"})
    [token] = set(FORM.findall(made.content.decode()))
    assert made["Cache-Control"] == "no-store"
    bearer: Any = {"Authorization": f"Bearer {token}"}
    assert Client().get("/api/v1/whoami", headers=bearer).json()["token"]["scopes"] == ["read", "submit", "publish"]

    shown = client.get(PAGE).content.decode()
    assert "&lt;laptop&gt;" in shown
    assert not re.search(FORM, shown)
    assert "of eve" not in shown
    # A token makes and ends none.
    assert Client().post(PAGE, {"name": "x", "days": "9"}, headers=bearer).status_code == 302
    row = AccessToken.objects.get(user=ada)
    assert client.post(PAGE, {"revoke": of_eve.pk}).status_code == 404
    assert client.post(PAGE, {"revoke": "\u00b2"}).status_code == 404
    assert client.post(PAGE, {"revoke": row.pk}).status_code == 302
    assert Client().get("/api/v1/whoami", headers=bearer).status_code == 401
    of_eve.refresh_from_db()
    assert of_eve.state == "active"


def test_what_cannot_be_made_is_said_beside_the_form(client: Client) -> None:
    assert client.get(PAGE).status_code == 302
    client.force_login(get_user_model()._default_manager.create_user("ada"))
    for sent, said in (
        ({"name": " ", "days": "7"}, b"has a name"),
        ({"name": "x", "days": "0"}, b"1 to 366 days"),
        ({"name": "x", "days": "many"}, b"1 to 366 days"),
        ({"name": "x", "days": "7", "scope": "root"}, b"no scope"),
    ):
        answer = client.post(PAGE, sent)
        assert answer.status_code == 400
        assert said in answer.content
    assert AccessToken.objects.count() == 0
