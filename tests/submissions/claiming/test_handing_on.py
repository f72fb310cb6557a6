"""An owner hands a publisher on to another account, which takes it or not; nobody else has a say."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from django.test import Client
from django.utils import timezone

from marketplace.models import HistoryEvent, PublisherClaim, SkillEntry, SkillTransfer
from marketplace.ownership.claims import ClaimRefused, Proof, end, owner_claim
from marketplace.ownership.handing_on import leave_claim, offer_claim, take_claim
from marketplace.ownership.rights import may_act_for
from marketplace.ownership.transfers import OFFER_DAYS
from tests.marketplace.factories import publish_example
from tests.submissions.claiming.handing import PAGE, account, offered, owner_of
from vskill.environments import WorkerEnv
from vskill.models import StaffLimit

pytestmark = pytest.mark.django_db(transaction=True)

ACME = "github.com/acme"


@pytest.fixture
def ada(env: WorkerEnv) -> Client:
    """Return the client of the owner of acme, which has a skill."""
    publish_example(env, name="pdf-tools")
    return owner_of(env, "acme", "ada")


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def hand_on(client: Client, name: str = "grace", publisher: str = "acme") -> Any:
    return client.post(PAGE, {"of_publisher": publisher, "account": name})


def number() -> int:
    return int(PublisherClaim.objects.get(state="proven", publisher=ACME).pk)


def owner(env: WorkerEnv) -> str:
    claim = owner_claim(env, ACME)
    return claim.account_name if claim is not None else ""


def test_an_owner_hands_a_publisher_on_and_the_other_account_takes_it(env: WorkerEnv, ada: Client) -> None:
    grace = account("grace")
    client = signed_in(grace)
    assert hand_on(ada).status_code == 302
    assert "offered to grace" in ada.get(PAGE).content.decode()
    assert "ada offers you the publisher acme" in client.get(PAGE).content.decode()
    # Until it is taken, nothing changes.
    assert owner(env) == "ada"
    assert not may_act_for(grace, env, ACME)

    assert client.post(PAGE, {"take": number()}).status_code == 302
    claim = owner_claim(env, ACME)
    assert claim is not None
    assert (claim.account_name, claim.proof, claim.evidence) == ("grace", Proof.HANDED_ON, "handed on by ada")
    assert "whoever had it before" in client.get(PAGE).content.decode()
    assert offered(ada).status_code == 422
    assert offered(client).status_code == 302
    row = SkillEntry.objects.get(slug="pdf-tools")
    assert (row.publisher_handle, row.publisher) == ("acme", ACME)
    told = HistoryEvent.objects.filter(subject=f"publisher:{ACME}").order_by("pk").values_list("action", "actor")
    assert list(told)[1:] == [("claim offered", "ada"), ("claim ended", "grace"), ("claimed", "grace")]


def test_nobody_else_offers_takes_or_declines(env: WorkerEnv, ada: Client) -> None:
    account("grace")
    mallory = owner_of(env, "mallory", "mallory")
    operator = signed_in(account("root-op", "operator"))
    for client in (mallory, operator):
        assert hand_on(client, "mallory").status_code == 422
    assert Client().post(PAGE, {"of_publisher": "acme", "account": "x"})["Location"].startswith("/sign-in")
    assert not PublisherClaim.objects.exclude(offered_to=None).exists()

    hand_on(ada)
    for client, act in [
        (mallory, "take"),
        (mallory, "leave"),
        (operator, "take"),
        (operator, "leave"),
        (ada, "take"),
        (Client(), "take"),
    ]:
        assert client.post(PAGE, {act: number()}).status_code in (302, 422), act
    assert b"offers you" not in mallory.get(PAGE).content
    claim = owner_claim(env, ACME)
    assert claim is not None
    assert (claim.account_name, claim.offered_to_name) == ("ada", "grace")
    assert mallory.post(PAGE, {"take": "x"}).status_code == 422


@pytest.mark.parametrize("who", ["ada", "grace"])
def test_it_is_declined_or_kept_and_can_be_offered_again(env: WorkerEnv, ada: Client, who: str) -> None:
    grace = signed_in(account("grace"))
    hand_on(ada)
    assert (ada if who == "ada" else grace).post(PAGE, {"leave": number()}).status_code == 302
    assert grace.post(PAGE, {"take": number()}).status_code == 422
    assert (ada if who == "ada" else grace).post(PAGE, {"leave": number()}).status_code == 422
    assert owner(env) == "ada"
    assert hand_on(ada).status_code == 302
    assert grace.post(PAGE, {"take": number()}).status_code == 302


def test_it_is_offered_to_one_account_that_is_there(env: WorkerEnv, ada: Client) -> None:
    grace, away, elsewhere = account("grace"), account("away"), account("elsewhere")
    type(away)._default_manager.filter(pk=away.pk).update(is_active=False)
    StaffLimit.objects.create(user=elsewhere, environments=["other"])
    for name in ("nobody", "ada", "away", "elsewhere", "", "\0"):
        answer = hand_on(ada, name)
        assert answer.status_code == 422
        assert "There is no other account called" in answer.content.decode(), name
    for publisher in ("newco", "", "github.com/acme"):
        assert "no publisher that you have claimed" in hand_on(ada, publisher=publisher).content.decode()
    hand_on(ada, "grace")
    account("otto")
    hand_on(ada, "otto")
    # The second offer takes the place of the first.
    assert signed_in(grace).post(PAGE, {"take": number()}).status_code == 422


def test_an_offer_lapses_and_ends_with_the_claim(env: WorkerEnv, ada: Client) -> None:
    grace = signed_in(account("grace"))
    hand_on(ada)
    PublisherClaim.objects.update(offered_at=timezone.now() - timedelta(days=OFFER_DAYS, minutes=1))
    assert b"offers you" not in grace.get(PAGE).content
    assert grace.post(PAGE, {"take": number()}).status_code == 422
    hand_on(ada)
    claim = owner_claim(env, ACME)
    assert claim is not None
    end(env, claim, actor="op", reason="it was not theirs")
    assert grace.post(PAGE, {"take": claim.pk}).status_code == 422
    assert owner(env) == ""


def test_what_the_former_owner_offered_ends(env: WorkerEnv, ada: Client) -> None:
    grace = account("grace")
    offered(ada)
    hand_on(ada)
    signed_in(grace).post(PAGE, {"take": number()})
    assert SkillTransfer.objects.get().state == "withdrawn"


def test_of_two_that_decide_at_once_one_counts(env: WorkerEnv, ada: Client) -> None:
    grace = account("grace")
    hand_on(ada)
    pk, owner_user = number(), type(grace)._default_manager.get(username="ada")
    start = threading.Barrier(3)
    ended: list[str] = []

    def race(act: Any, user: Any) -> None:
        try:
            start.wait()
            act(env, user, pk)
            ended.append(act.__name__)
        except ClaimRefused:
            ended.append("refused")
        finally:
            connections.close_all()

    acts = [(take_claim, grace), (take_claim, grace), (leave_claim, owner_user)]
    threads = [threading.Thread(target=race, args=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended.count("refused") == 2
    assert PublisherClaim.objects.filter(state="proven", publisher=ACME).count() == 1
    assert owner(env) == ("grace" if "take_claim" in ended else "ada")


def test_a_publisher_that_a_closed_account_has_offered_is_taken_by_nobody(env: WorkerEnv, ada: Client) -> None:
    grace = account("grace")
    hand_on(ada)
    get_user_model()._default_manager.filter(username="ada").update(is_active=False)
    refused = signed_in(grace).post(PAGE, {"take": number()})
    assert (refused.status_code, "is closed here" in refused.content.decode()) == (422, True)
    assert owner(env) == "ada"


@pytest.mark.usefixtures("ada")
def test_who_may_not_read_a_closed_registry_is_not_there_to_take_a_publisher(env: WorkerEnv) -> None:
    closed = replace(env, policy=replace(env.policy, access="closed"))
    account("otto")
    account("vera", "viewer")
    owner_account = get_user_model()._default_manager.get(username="ada")
    for name in ("otto", "nobody"):
        with pytest.raises(ClaimRefused, match="There is no other account called"):
            offer_claim(closed, owner_account, "acme", name)
    assert offer_claim(closed, owner_account, "acme", "vera").offered_to_name == "vera"
