"""Operators see claims, give a publisher to an account, and end a claim; others do not."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from marketplace.models import HistoryEvent, PublisherClaim
from marketplace.ownership.claims import begin, grant, owner_claim
from tests.marketplace.factories import publish_example
from vskill.accounts.roles import Role
from vskill.environments import WorkerEnv
from vskill.models import RoleGrant

pytestmark = pytest.mark.django_db(transaction=True)


def account(name: str, role: str = "") -> Any:
    user: Any = get_user_model()._default_manager.create_user(name)
    if role:
        RoleGrant.objects.create(
            user=user, environment="default", role=role, granted_by="root", granted_at=timezone.now()
        )
    return user


def claim(*arguments: str) -> Any:
    out = io.StringIO()
    call_command("claim", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


@pytest.mark.parametrize(
    ("written", "publisher", "handle"),
    [
        ("acme", "github.com/acme", "acme"),
        ("@ACME", "github.com/acme", "acme"),
        ("github.com/Acme", "github.com/acme", "acme"),
        ("git.corp.example/platform", "git.corp.example/platform", "platform.git.corp.example"),
        ("/folder", "local/folder", "folder.local"),
        ("account/ada", "account/ada", "ada.account"),
    ],
)
def test_the_command_gives_a_publisher_lists_it_and_takes_it_back(
    env: WorkerEnv, written: str, publisher: str, handle: str
) -> None:
    publish_example(env)
    account("ada")
    looked = claim("grant", written, "ada", "--reason", "known to us", "--dry-run")
    assert (looked["publisher"], looked["handle"], looked["heldBy"]) == (publisher, handle, None)
    assert not PublisherClaim.objects.exists()

    given = claim("grant", written, "ada", "--reason", "known to us")
    assert (given["publisher"], given["handle"], given["account"]) == (publisher, handle, "ada")
    assert (given["proof"], given["dryRun"]) == ("operator", False)
    assert [one["publisher"] for one in claim("list")["claims"]] == [publisher]

    assert claim("revoke", written, "--reason", "left us", "--dry-run")["account"] == "ada"
    assert owner_claim(env, publisher) is not None
    claim("revoke", written, "--reason", "left us")
    assert owner_claim(env, publisher) is None
    actions = HistoryEvent.objects.filter(subject=f"publisher:{publisher}").values_list("action", flat=True)
    assert list(actions) == ["claimed", "claim ended"]


def test_the_command_shows_what_waits_where_that_is_asked_for_and_never_a_code(env: WorkerEnv) -> None:
    begun = begin(env, account("ada"), "https://github.com/acme/skills")
    assert claim("list") == {"claims": []}
    (waiting,) = claim("list", "--waiting")["claims"]
    assert (waiting["state"], waiting["account"]) == ("waiting", "ada")
    assert begun.code not in json.dumps(waiting)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("grant", "github.com/acme", "nobody"), "no user 'nobody'"),
        (("grant", "nowhere", "ada"), "Write it as host/owner"),
        (("grant", "github.com/grace", "ada"), "claimed by grace already"),
        (("revoke", "github.com/other"), "Nobody has claimed github.com/other"),
    ],
)
def test_the_command_refuses_with_a_reason(env: WorkerEnv, arguments: tuple[str, ...], said: str) -> None:
    account("ada")
    grant(env, account("grace"), "github.com/grace", "grace", actor="op", reason="x")
    with pytest.raises(CommandError, match=said):
        claim(*arguments, "--reason", "x")
    assert PublisherClaim.objects.count() == 1


@pytest.mark.parametrize(
    ("role", "sees", "ends"),
    [("", 302, 302), (Role.VIEWER, 302, 302), (Role.REVIEWER, 200, 403), (Role.OPERATOR, 200, 302)],
)
def test_the_admin_shows_claims_and_operators_alone_end_them(env: WorkerEnv, role: str, sees: int, ends: int) -> None:
    found = grant(env, account("ada"), "github.com/acme", "acme", actor="op", reason="known to us")
    client = Client()
    client.force_login(account("grace", role))
    place = "/admin/marketplace/publisherclaim/"

    shown = client.get(place)
    assert shown.status_code == sees
    assert (b"github.com/acme" in shown.content) == (sees == 200)
    if sees == 200:
        page = client.get(f"{place}{found.pk}/change/").content.decode()
        assert found.code not in page
    answer = client.post(f"{place}operate/revoke/?ids={found.pk}", {"reason": "left us"})
    assert answer.status_code == ends
    assert (owner_claim(env, "github.com/acme") is None) == (role == Role.OPERATOR)
