"""An owner withdraws what its repositories publish, on a page and by clawhub, and undoes it; operators' words stand."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from marketplace.catalog import delete_skill, quarantine_skill, quarantine_version, restore, yank_version
from marketplace.models import HistoryEvent, SkillVersion
from marketplace.ownership.claims import end, owner_claim
from marketplace.ownership.transfers import hand_over
from marketplace.skills.audience import show_to
from tests.marketplace.factories import publish_example
from tests.page_text import without_inline_tags
from tests.submissions.claiming.handing import NEWCO, account, owner_of
from tests.submissions.uploads.test_withdraw import send
from tests.submissions.uploads.uploading import SKILLS, token_for
from vskill.access_tokens.scopes import Scope
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "/account/withdraw"
SKILL = f"{SKILLS}/pdf-tools"
OPERATORS = "Operators of this registry"


@pytest.fixture
def ada(env: WorkerEnv) -> Client:
    """Return the client of the owner of acme, which published two versions from a repository."""
    for number in ("1.0.0", "1.1.0"):
        publish_example(env, name="pdf-tools", declared_version=number, commit_sha=number[2] * 40, body=number)
    return owner_of(env, "acme", "ada")


def shown(client: Client) -> str:
    return without_inline_tags(client.get(f"{PAGE}?skill=pdf-tools").content.decode())


def post(client: Client, **said: str) -> int:
    answer: Any = client.post(PAGE, {"skill": "pdf-tools", **said})
    assert answer.status_code != 302 or answer["Location"] == f"{PAGE}?skill=pdf-tools"
    return int(answer.status_code)


def archive(version: str = "") -> int:
    return Client().get(f"/api/v1/download?slug=pdf-tools&version={version}").status_code


def latest() -> str:
    told: Any = Client().get(SKILL).json()["latestVersion"]
    return str(told["version"])


def test_an_owner_withdraws_a_version_and_brings_it_back(ada: Client) -> None:
    assert post(ada, withdraw="1.1.0", reason="breaks tables") == 302
    assert latest() == "1.0.0"
    assert "The reason given: breaks tables" in shown(ada)
    assert post(ada, bring_back="1.1.0") == 302
    assert latest() == "1.1.0"
    told = HistoryEvent.objects.filter(action__in=("yanked", "unyanked")).order_by("pk")
    assert list(told.values_list("action", "actor", "version", "reason")) == [
        ("yanked", "ada", "1.1.0", "breaks tables"),
        ("unyanked", "ada", "1.1.0", "Its publisher brought it back."),
    ]


def test_what_an_owner_writes_deceives_no_operator(env: WorkerEnv, ada: Client) -> None:
    assert post(ada, withdraw="1.1.0", reason="all \u202efine\x1b[2J") == 302
    said = "all [U+202E]fine[U+001B][2J"
    assert SkillVersion.objects.get(version="1.1.0").yank_reason == said
    assert HistoryEvent.objects.get(action="yanked").reason == said
    claim = owner_claim(env, "github.com/acme")
    assert claim is not None
    end(env, claim, actor="op", reason="\u202ea reason of any event")
    told = HistoryEvent.objects.get(action="claim ended").reason
    assert told == "of ada: [U+202E]a reason of any event"


def test_a_version_that_no_database_could_hold_is_not_there(ada: Client) -> None:
    for said in ({"withdraw": "1.1\0"}, {"bring_back": "1.1\0"}):
        assert post(ada, **said) == 404
    assert latest() == "1.1.0"


def test_an_owner_withdraws_a_skill_and_brings_it_back(ada: Client) -> None:
    assert post(ada, withdraw="", reason="not kept up") == 302
    assert archive() == 410
    assert "not kept up" in shown(ada)
    assert post(ada, bring_back="") == 302
    assert archive() == 200


def test_an_owner_does_the_same_with_clawhub(env: WorkerEnv, ada: Client) -> None:
    token = token_for(env)
    assert send(token, "DELETE", f"{SKILL}/versions/1.1.0") == 200
    assert latest() == "1.0.0"
    assert send(token, "POST", f"{SKILL}/versions/1.1.0/restore") == 200
    assert send(token, "DELETE", SKILL) == 200
    assert archive() == 410
    # On the page as well, whichever way it was withdrawn.
    assert post(ada, bring_back="") == 302
    assert archive() == 200


def test_what_operators_withdrew_an_owner_does_not_bring_back(env: WorkerEnv, ada: Client) -> None:
    # At a terminal the name of the operator is that of a user of the machine, and may be the owner's here.
    for actor in ("root", "ada"):
        restore(env, "pdf-tools", actor="root", reason="for the next one")
        yank_version(env, "pdf-tools", "1.1.0", actor=actor, reason="steals keys")
        assert post(ada, withdraw="1.1.0") == 302
        assert post(ada, bring_back="1.1.0") == 403
        assert send(token_for(env), "POST", f"{SKILL}/versions/1.1.0/restore") == 403
        assert latest() == "1.0.0"
        assert "by operators" in shown(ada)
        for withdraw in (delete_skill, quarantine_skill):
            withdraw(env, "pdf-tools", actor=actor, reason="steals keys")
            assert post(ada, bring_back="") == 403
            assert send(token_for(env), "POST", f"{SKILL}/undelete") == 403
            assert archive() == 410
            assert OPERATORS in shown(ada)
    # A withdrawal by its owner would be one that the owner takes back.
    assert post(ada, withdraw="") == 409


def test_what_an_operator_withdraws_after_the_owner_stays_withdrawn(env: WorkerEnv, ada: Client) -> None:
    root = Client()
    root.force_login(account("root-op", "operator"))
    for value in ("1.1.0", ""):
        assert post(ada, withdraw=value, reason="a mistake") == 302
        assert post(root, withdraw=value, reason="steals keys") == 302
        assert post(ada, bring_back=value) == 403
    assert "steals keys" in shown(ada)
    assert post(root, bring_back="") == 302
    assert archive() == 200
    quarantine_version(env, "pdf-tools", "1.0.0", actor="root", reason="worse")
    post(ada, withdraw="1.0.0")
    post(ada, bring_back="1.0.0")
    assert archive("1.0.0") == 410
    told = list(HistoryEvent.objects.filter(action="yanked", version="1.1.0").values_list("actor", "by_publisher"))
    assert told == [("ada", True), ("root-op", False)]


def test_nobody_else_withdraws_or_sees_the_page(env: WorkerEnv, ada: Client) -> None:
    strangers = (owner_of(env, "mallory", "mallory"), Client())
    reviewer = Client()
    reviewer.force_login(account("rita", "reviewer"))
    show_to(env, "pdf-tools", "team:7", actor="op", reason="for a team")
    before = HistoryEvent.objects.count()
    post(ada, withdraw="1.1.0")
    for client in (*strangers, reviewer):
        for said in ({"withdraw": ""}, {"withdraw": "1.0.0"}, {"bring_back": "1.1.0"}, {"bring_back": ""}):
            answer: Any = client.post(PAGE, {"skill": "pdf-tools", **said})
            if client is strangers[1]:
                assert answer["Location"].startswith("/sign-in?next=")
                continue
            assert answer.status_code == 404, said
            # It says the same of a skill that is not there.
            assert b"that you could withdraw" in answer.content
        shown_page: Any = client.get(f"{PAGE}?skill=pdf-tools")
        assert shown_page.status_code in (302, 404)
        assert b"1.1.0" not in shown_page.content
    token: Any = ada.post(PAGE, {"skill": "pdf-tools", "withdraw": ""}, HTTP_ORIGIN="https://evil.test")
    assert token.status_code in (302, 403)
    assert "sign-in" in token.get("Location", "sign-in")
    bearer = {"Authorization": f"Bearer {token_for(env, 'ada', Scope.SUBMIT, Scope.PUBLISH)}"}
    assert "sign-in" in str(Client().post(PAGE, {"skill": "pdf-tools", "withdraw": ""}, headers=bearer)["Location"])
    assert HistoryEvent.objects.count() == before + 1
    assert list(SkillVersion.objects.exclude(yanked_at=None).values_list("version", flat=True)) == ["1.1.0"]


def test_the_right_ends_with_the_claim_and_goes_on_with_the_skill(env: WorkerEnv, ada: Client) -> None:
    post(ada, withdraw="1.1.0", reason="breaks tables")
    grace = owner_of(env, "newco", "grace")
    hand_over(env, "pdf-tools", NEWCO, actor="op", reason="they split up")
    assert post(ada, bring_back="1.1.0") == 404
    # What a publisher withdrew, the one that has the skill now brings back.
    assert post(grace, bring_back="1.1.0") == 302
    assert latest() == "1.1.0"
    claim = owner_claim(env, "github.com/newco")
    assert claim is not None
    end(env, claim, actor="op", reason="left us")
    assert post(grace, withdraw="1.1.0") == 404


def test_what_was_withdrawn_before_is_brought_back_by_the_account_of_that_name(env: WorkerEnv, ada: Client) -> None:
    yank_version(env, "pdf-tools", "1.1.0", actor="ada", reason="breaks tables")
    yank_version(env, "pdf-tools", "1.0.0", actor="root", reason="steals keys")
    # As the release before wrote them.
    HistoryEvent.objects.filter(action="yanked").update(by_publisher=None)
    assert post(ada, bring_back="1.1.0") == 302
    assert post(ada, bring_back="1.0.0") == 403


def test_the_pages_lead_there(ada: Client) -> None:
    link = "/account/withdraw?skill=pdf-tools"
    assert link in ada.get("/account/publishers").content.decode()
    assert link in ada.get("/skills/pdf-tools").content.decode()
    assert link not in Client().get("/skills/pdf-tools").content.decode()
    assert "Skill of yours" in without_inline_tags(ada.get(PAGE).content.decode())
    assert post(ada, nothing="") == 400
    assert post(ada, withdraw="9.9.9") == 404
    assert post(ada, withdraw="9.9.9\0") == 404
    assert post(ada, skill="\0", withdraw="") == 404
    assert post(ada, withdraw="1.0.0", reason="a \0 in it") == 302
    user = get_user_model()._default_manager.get(username="ada")
    get_user_model()._default_manager.filter(pk=user.pk).update(is_active=False)
    assert ada.get(PAGE)["Location"].startswith("/sign-in")
