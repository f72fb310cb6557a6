"""An owner offers everything that a publisher has, and the receiving owner takes it as one; nobody else has a say."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.test import Client

from marketplace.models import HistoryEvent, SkillEntry, SkillTransfer
from marketplace.ownership.claims import grant
from submissions.claiming import whole
from tests.marketplace.factories import publish_example
from tests.submissions.claiming.handing import PAGE, account, offered, owner_of
from tests.submissions.front_door import drain
from tests.submissions.uploads.uploading import publish_form, token_for
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = ("csv-tools", "pdf-tools", "xml-tools")


@pytest.fixture
def ada(env: WorkerEnv) -> Client:
    """Return the client of the owner of acme, which has three skills."""
    for name in NAMES:
        publish_example(env, name=name, skill_path=f"skills/{name}", body=name)
    return owner_of(env, "acme", "ada")


def offer_all(client: Client, **more: str) -> Any:
    return client.post(PAGE, {"publisher": "acme", "receiver": "github.com/newco", "reason": "acme is newco", **more})


def newest() -> int:
    return int(SkillTransfer.objects.order_by("-pk")[0].pk)


def owners() -> dict[str, str]:
    return dict(SkillEntry.objects.values_list("slug", "publisher_handle"))


def test_all_of_a_publisher_is_offered_and_accepted_as_one(env: WorkerEnv, ada: Client) -> None:
    grace = owner_of(env, "newco", "grace")
    assert offer_all(ada).status_code == 302
    assert set(owners().values()) == {"acme"}
    assert "Withdraw all 3" in ada.get(PAGE).content.decode()
    page = grace.get(PAGE).content.decode()
    assert "acme offers 3 skills to newco" in page
    assert all(name in page for name in (*NAMES, "acme is newco", "https://github.com/newco/skills"))

    assert grace.post(PAGE, {"accept_all": newest()}).status_code == 302
    assert owners() == dict.fromkeys(NAMES, "newco")
    rows = SkillTransfer.objects.values_list("state", "offered_by", "decided_by")
    assert set(rows) == {("done", "ada", "grace")}
    assert HistoryEvent.objects.filter(action="transferred", actor="grace").count() == 3
    # The former name leads on.
    assert Client().get("/publishers/acme", follow=True).redirect_chain[0][0].endswith("/publishers/newco")
    assert Client().get("/@acme/pdf-tools", follow=True).status_code == 200


@pytest.mark.parametrize(("act", "state"), [("decline_all", "declined"), ("withdraw_all", "withdrawn")])
def test_all_is_declined_or_withdrawn_as_one_and_can_be_offered_again(
    env: WorkerEnv, ada: Client, act: str, state: str
) -> None:
    grace = owner_of(env, "newco", "grace")
    offer_all(ada)
    assert (grace if act == "decline_all" else ada).post(PAGE, {act: newest()}).status_code == 302
    assert set(SkillTransfer.objects.values_list("state", flat=True)) == {state}
    assert set(owners().values()) == {"acme"}
    assert offer_all(ada).status_code == 302


def test_nobody_else_offers_or_decides(env: WorkerEnv, ada: Client) -> None:
    grace, mallory = owner_of(env, "newco", "grace"), owner_of(env, "mallory", "mallory")
    operator = Client()
    operator.force_login(account("root-op", "operator"))
    for client in (grace, mallory, operator):
        answer = offer_all(client, receiver="github.com/mallory")
        assert answer.status_code == 422
        assert "no publisher that you have claimed" in answer.content.decode()
    assert Client().post(PAGE, {"publisher": "acme", "receiver": "x/y"})["Location"].startswith("/sign-in")
    assert not SkillTransfer.objects.exists()

    offer_all(ada)
    for client, act in [
        (mallory, "accept_all"),
        (mallory, "decline_all"),
        (mallory, "withdraw_all"),
        (ada, "accept_all"),
        (ada, "decline_all"),
        (grace, "withdraw_all"),
        (Client(), "accept_all"),
    ]:
        assert client.post(PAGE, {act: newest()}).status_code in (302, 422), act
    assert set(SkillTransfer.objects.values_list("state", flat=True)) == {"offered"}
    assert set(owners().values()) == {"acme"}


def test_what_was_offered_since_the_page_was_made_is_not_accepted_with_the_rest(env: WorkerEnv, ada: Client) -> None:
    grace = owner_of(env, "newco", "grace")
    offer_all(ada)
    seen = newest()
    publish_example(env, name="late-tools", skill_path="skills/late", body="late")
    assert offer_all(ada).status_code == 302
    assert grace.post(PAGE, {"accept_all": seen}).status_code == 302
    assert owners() == {**dict.fromkeys(NAMES, "newco"), "late-tools": "acme"}
    assert SkillTransfer.objects.get(state="offered").skill.slug == "late-tools"


def test_offers_of_others_are_not_accepted_with_them(env: WorkerEnv, ada: Client) -> None:
    grace = owner_of(env, "newco", "grace")
    other = "https://github.com/other/skills"
    publish_example(env, name="of-others", repo_url=other, body="other")
    offered(owner_of(env, "other", "otto"), skill="of-others")
    offer_all(ada)
    grace.post(PAGE, {"accept_all": newest()})
    assert owners() == {**dict.fromkeys(NAMES, "newco"), "of-others": "other"}


def test_what_cannot_be_handed_over_is_told_and_the_rest_is_done(env: WorkerEnv, ada: Client) -> None:
    grace = owner_of(env, "newco", "grace")
    home = "https://github.com/newco/skills"
    publish_example(env, name="taken", repo_url=home, skill_path="skills/csv-tools", body="taken")
    answer = offer_all(ada)
    assert answer.status_code == 422
    assert "2 of 3 were offered. csv-tools: taken is published from" in answer.content.decode()
    publish_example(env, name="taken-too", repo_url=home, skill_path="skills/pdf-tools", body="taken too")
    answer = grace.post(PAGE, {"accept_all": newest()})
    assert "1 of 2 were accepted. pdf-tools: taken-too is published" in answer.content.decode()
    assert owners()["xml-tools"] == "newco"
    assert owners()["pdf-tools"] == "acme"
    assert SkillTransfer.objects.get(state="offered").skill.slug == "pdf-tools"


def test_many_are_done_a_part_at_a_time(env: WorkerEnv, ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "MOST_AT_ONCE", 2)
    grace = owner_of(env, "newco", "grace")
    assert "2 of 3 were offered. 2 are done at once" in offer_all(ada).content.decode()
    assert offer_all(ada).status_code == 302
    assert SkillTransfer.objects.count() == 3
    assert "is not offered already" in offer_all(ada).content.decode()
    number = newest()
    assert "for the other 1." in grace.post(PAGE, {"accept_all": number}).content.decode()
    assert grace.post(PAGE, {"accept_all": SkillTransfer.objects.get(state="offered").pk}).status_code == 302
    assert owners() == dict.fromkeys(NAMES, "newco")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"publisher": "newco"}, "no publisher that you have claimed"),
        ({"publisher": "a\0"}, "no publisher that you have claimed"),
        ({"receiver": "a\0"}, "Nobody has claimed a publisher called"),
        ({"publisher": ""}, "no publisher that you have claimed"),
        ({"receiver": "unheard-of"}, "Nobody has claimed a publisher called"),
        ({"receiver": ""}, "Nobody has claimed a publisher called"),
        ({"receiver": "github.com/acme"}, "That is acme itself"),
        ({"receiver": "acme"}, "That is acme itself"),
        ({"receiver": "account/eve"}, "no host/owner that has repositories"),
        # No database looks for NUL, and PostgreSQL fails on it.
        ({"publisher": "acme\0"}, "no publisher that you have claimed"),
        ({"receiver": "new\0co"}, "Nobody has claimed a publisher called"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(ada: Client, said: dict[str, str], words: str) -> None:
    answer = offer_all(ada, **said)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not SkillTransfer.objects.exists()


def test_what_was_uploaded_for_a_publisher_is_uploaded_for_its_new_one(env: WorkerEnv) -> None:
    token = token_for(env)
    user = get_user_model()._default_manager.get(username="ada")
    grant(env, user, "github.com/acme", "acme", actor="op", reason="known")
    assert publish_form(token, ownerHandle="acme").status_code == 202
    async_to_sync(drain)(env)
    client = Client()
    client.force_login(user)
    grace = owner_of(env, "newco", "grace")
    # By the handle of who has claimed it as well.
    assert offer_all(client, receiver="@newco").status_code == 302
    grace.post(PAGE, {"accept_all": newest()})
    row = SkillEntry.objects.get(slug="pdf-tools")
    assert (row.publisher_handle, row.repo_url) == ("newco", "upload://github.com/newco/pdf-tools")


@pytest.mark.parametrize("receiver", ["gitlab.com/newco/tools", "github.com/newco/../../else", "local/newco"])
def test_what_was_uploaded_goes_to_nobody_but_who_was_named(env: WorkerEnv, receiver: str) -> None:
    token = token_for(env)
    user = get_user_model()._default_manager.get(username="ada")
    grant(env, user, "github.com/acme", "acme", actor="op", reason="known")
    publish_form(token, ownerHandle="acme")
    async_to_sync(drain)(env)
    client = Client()
    client.force_login(user)
    answer = offer_all(client, receiver=receiver)
    assert (answer.status_code, "is no host/owner that could upload" in answer.content.decode()) == (422, True)
    assert not SkillTransfer.objects.exists()
