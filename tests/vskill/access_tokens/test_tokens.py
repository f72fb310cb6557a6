"""A token from its making to its end, as its owner, its programs and operators see it."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client, override_settings
from django.utils import timezone

from tests.marketplace.factories import publish_example
from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.scopes import Scope
from vskill.access_tokens.token_form import is_token, new_token
from vskill.access_tokens.tokens import MOST_ACTIVE, TokenNotMade, make_token, revoke
from vskill.accounts.visitor import visitor_of
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.threads import close_database_threads
from vskill.models import StaffLimit
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)

PAGE, TEXT, JSON = "/skills/hello-skill", "/api/v1/skills/hello-skill", "/api/v1/submissions"


def person(name: str = "ada", **fields: Any) -> Any:
    return get_user_model()._default_manager.create_user(name, password="long enough to pass", **fields)


def token_for(env: WorkerEnv, user: Any, *scopes: Scope) -> tuple[AccessToken, str]:
    return make_token(env, user, name="laptop", scopes=scopes or (Scope.READ,))


def bearing(token: str, address: str = TEXT, **headers: str) -> Any:
    return Client().get(address, headers={"Authorization": f"Bearer {token}", **headers})


def test_a_token_opens_until_it_ends_and_is_stored_nowhere(env: WorkerEnv) -> None:
    publish_example(env)
    user = person()
    row, token = token_for(env, user, Scope.SUBMIT, Scope.READ)
    assert is_token(token)
    stored = json.dumps(list(AccessToken.objects.values()), default=str)
    assert token not in stored
    assert token[4:] not in stored
    assert (row.scopes, row.state, row.last_used_at) == ("read submit", "active", None)

    assert [bearing(token, address).status_code for address in (PAGE, TEXT, JSON)] == [200, 200, 200]
    assert (seen := bearing(token).wsgi_request).access_token == row
    assert visitor_of(seen) == user
    close_database_threads()
    row.refresh_from_db()
    used = row.last_used_at
    assert used is not None

    # What is written of its use is as fresh as an hour, and costs no write until then.
    assert bearing(token).status_code == 200
    close_database_threads()
    row.refresh_from_db()
    assert row.last_used_at == used
    AccessToken.objects.update(last_used_at=used - timedelta(hours=1))
    assert bearing(token).status_code == 200
    close_database_threads()
    row.refresh_from_db()
    assert row.last_used_at >= used

    user.is_active = False
    user.save()
    assert "closed" in bearing(token).content.decode()
    user.is_active = True
    user.save()
    AccessToken.objects.update(expires_at=timezone.now())
    assert "expired on" in bearing(token).content.decode()
    AccessToken.objects.update(expires_at=timezone.now() + timedelta(days=1))
    assert bearing(token).status_code == 200
    assert revoke(row, actor="ada", reason="lost")
    assert not revoke(row, actor="eve", reason="again")
    assert "revoked on" in bearing(token).content.decode()
    row.refresh_from_db()
    assert (row.state, row.revoked_by, row.revoked_because) == ("revoked", "ada", "lost")


def test_what_opens_nothing_is_refused_in_the_words_of_each_dialect(
    env: WorkerEnv, caplog: pytest.LogCaptureFixture
) -> None:
    publish_example(env)
    caplog.set_level(logging.DEBUG)
    wrong = new_token()
    for token in (wrong, wrong[:-1], "gho_somebody", "", f"{wrong},Bearer {wrong}", "\xff"):
        answers = [bearing(token, address) for address in (PAGE, TEXT, JSON, "/submit", "/nowhere", "/admin/")]
        assert {answer.status_code for answer in answers} == {401}, token
        assert {answer["Content-Type"].partition(";")[0] for answer in answers} == {"text/plain", "application/json"}
        assert answers[2].json()["error"] == "invalid_token"
        assert all('error="invalid_token"' in answer["WWW-Authenticate"] for answer in answers)
        assert not any(token and token.encode() in answer.content for answer in answers)
    assert wrong not in caplog.text
    read = token_for(env, person())[1]
    for address in ("/api/v1/submissions", "/api/v1/jobs", "/api/v1/skills/hello-skill/scan-again", f"{PAGE}/report"):
        answer = Client().post(address, "{}", "application/json", headers={"Authorization": f"Bearer {read}"})
        assert answer.status_code == 403, address
        assert b"made for read, and this needs one for submit. Nothing was done." in answer.content
    # A proxy may ask for a password of its own.
    assert Client().get(PAGE, headers={"Authorization": "Basic YTpi"}).status_code == 200
    # A token is no session: it opens no page of the admin.
    token = token_for(env, person("root", is_staff=True, is_superuser=True))[1]
    assert bearing(token, "/admin/").status_code == 302


def test_a_token_belongs_to_one_environment() -> None:
    two = {"default": {"hosts": ["one.test"]}, "other": {"hosts": ["two.test"]}}
    with override_settings(VSKILL_ENVIRONMENTS=two, ALLOWED_HOSTS=["one.test", "two.test"]):
        home, other = get_environment("default"), get_environment("other")
        run_with_worker_env(home, publish_example, home)
        user = person()
        StaffLimit.objects.create(user=user, environments=["default"])
        token = token_for(home, user)[1]
        assert bearing(token, Host="one.test").status_code == 200
        assert bearing(token, Host="two.test").status_code == 401
        with pytest.raises(TokenNotMade, match="may not work in 'other'"):
            token_for(other, user)


def test_what_cannot_be_a_token_is_not_made(env: WorkerEnv) -> None:
    user = person()
    for name, days, said in (("  ", 1, "name"), ("x", 0, "1 to 366"), ("x", 367, "1 to 366")):
        with pytest.raises(TokenNotMade, match=said):
            make_token(env, user, name=name, scopes=[Scope.READ], days=days)
    assert make_token(env, user, name=f"{new_token()} \u202e", scopes=[Scope.READ])[0].name == "vsk_[removed] \\u{202e}"
    for _number in range(MOST_ACTIVE - 1):
        token_for(env, user)
    with pytest.raises(TokenNotMade, match="Revoke one first"):
        token_for(env, user)
    assert AccessToken.objects.count() == MOST_ACTIVE


def run(*arguments: str) -> Any:
    output = StringIO()
    call_command("token", *arguments, stdout=output, stderr=StringIO())
    return output.getvalue()


def test_operators_make_list_and_revoke_tokens_from_a_shell(env: WorkerEnv) -> None:
    publish_example(env)
    person()
    made = json.loads(run("create", "ada", "--scope", "publish", "--scope", "read", "--days", "7", "--json"))
    assert (made["scopes"], made["user"], made["state"]) == (["read", "publish"], "ada", "active")
    token = run("create", "ada", "--name", "ci").strip()
    assert [bearing(one).status_code for one in (token, made["token"])] == [200, 200]

    listed = run("list", "--user", "ada")
    assert "ci  read submit  active, until" in listed
    assert token not in listed
    assert [one["name"] for one in json.loads(run("list", "--json"))["tokens"]] == ["ci", "made on the server"]

    number = str(made["id"])
    assert "is revoked" in run("revoke", number, "--reason", "lost")
    assert bearing(made["token"]).status_code == 401
    assert json.loads(run("revoke", number, "--reason", "lost", "--json"))["result"] == "revoked before"
    for arguments, said in (
        (("create", "eve"), "no user 'eve'"),
        (("create", "ada", "--scope", "root"), "no scope 'root'"),
        (("create", "ada", "--days", "999"), "1 to 366"),
        (("revoke", "0", "--reason", "x"), "no token 0"),
    ):
        with pytest.raises(CommandError, match=said):
            run(*arguments)


def test_operators_see_the_tokens_of_their_environment_and_revoke_them(env: WorkerEnv, client: Client) -> None:
    publish_example(env)
    client.force_login(person("root", is_staff=True, is_superuser=True))
    row, token = token_for(env, person())
    AccessToken.objects.create(
        user=row.user,
        namespace="elsewhere",
        name="tablet",
        digest="0",
        scopes="read",
        created_at=row.created_at,
        expires_at=row.expires_at,
    )
    place = "/admin/access_tokens/accesstoken/"
    page = client.get(place).content.decode()
    assert "laptop" in page
    assert "tablet" not in page
    shown = client.get(f"{place}{row.pk}/change/").content.decode()
    assert row.digest not in page + shown
    assert client.get(f"{place}add/").status_code == 403
    assert "laptop" in client.get(f"{place}?q=ada").content.decode()
    client.post(f"{place}operate/revoke/", {"ids": str(row.pk), "reason": "lost"})
    assert bearing(token).status_code == 401
    row.refresh_from_db()
    assert (row.revoked_by, row.revoked_because) == ("root", "lost")
