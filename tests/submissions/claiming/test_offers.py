"""An owner offers a skill, and the receiving owner accepts it; nobody else has a say."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from django.test import Client

from marketplace.catalog import delete_skill, quarantine_skill, restore
from marketplace.models import HistoryEvent, SkillEntry, SkillTransfer
from marketplace.ownership.claims import end, owner_claim
from marketplace.ownership.transfers import TransferRefused, accept, offer
from marketplace.skills.withdrawal import why_withdrawn
from tests.marketplace.factories import publish_example
from tests.submissions.claiming.handing import NEWCO, PAGE, handed, offered, owner_of
from vskill.environments import WorkerEnv
from vskill.models import StaffLimit

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_owner_offers_and_the_receiving_owner_accepts(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    giver, receiver = owner_of(env, "acme", "ada"), owner_of(env, "newco", "grace")
    assert offered(giver).status_code == 302
    assert SkillEntry.objects.get(slug="pdf-tools").publisher_handle == "acme"
    assert "pdf-tools to newco" in giver.get(PAGE).content.decode()
    page = receiver.get(PAGE).content.decode()
    assert "acme offers pdf-tools to newco" in page
    assert "we split up" in page

    number = SkillTransfer.objects.get().pk
    assert receiver.post(PAGE, {"accept": number}).status_code == 302
    assert SkillEntry.objects.get(slug="pdf-tools").publisher_handle == "newco"
    done = SkillTransfer.objects.get()
    assert (done.state, done.offered_by, done.decided_by) == ("done", "ada", "grace")
    assert HistoryEvent.objects.filter(action__startswith="transfer").values_list("actor", flat=True).count() == 2


def test_nobody_else_offers_accepts_declines_or_withdraws(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    giver, receiver = owner_of(env, "acme", "ada"), owner_of(env, "newco", "grace")
    mallory = owner_of(env, "mallory", "mallory")
    assert offered(mallory, receiver="github.com/mallory").status_code == 422
    assert offered(receiver).status_code == 422
    assert not SkillTransfer.objects.exists()

    offered(giver)
    number = SkillTransfer.objects.get().pk
    for client, act in [
        (mallory, "accept"),
        (mallory, "decline"),
        (mallory, "withdraw"),
        (giver, "accept"),
        (giver, "decline"),
        (receiver, "withdraw"),
    ]:
        assert client.post(PAGE, {act: number}).status_code == 422, act
    assert b"offers" not in mallory.get(PAGE).content
    assert Client().post(PAGE, {"accept": number})["Location"].startswith("/sign-in")
    assert SkillTransfer.objects.get().state == "offered"
    assert SkillEntry.objects.get(slug="pdf-tools").publisher_handle == "acme"


@pytest.mark.parametrize(("act", "state"), [("decline", "declined"), ("withdraw", "withdrawn")])
def test_an_offer_is_declined_or_withdrawn_and_can_be_made_again(env: WorkerEnv, act: str, state: str) -> None:
    publish_example(env, name="pdf-tools")
    giver, receiver = owner_of(env, "acme", "ada"), owner_of(env, "newco", "grace")
    offered(giver)
    assert "is offered to a publisher already" in offered(giver).content.decode()
    number = SkillTransfer.objects.get().pk
    (receiver if act == "decline" else giver).post(PAGE, {act: number})

    assert SkillTransfer.objects.get().state == state
    assert receiver.post(PAGE, {"accept": number}).status_code == 422
    assert offered(giver).status_code == 302


def test_an_offer_ends_with_the_claim_that_it_was_made_under(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    giver, receiver = owner_of(env, "acme", "mallory"), owner_of(env, "newco", "grace")
    offered(giver)
    claim = owner_claim(env, "github.com/acme")
    assert claim is not None
    end(env, claim, actor="op", reason="it was not theirs")

    assert SkillTransfer.objects.get().state == "withdrawn"
    assert receiver.post(PAGE, {"accept": SkillTransfer.objects.get().pk}).status_code == 422


def test_an_offer_of_what_has_changed_hands_meanwhile_is_void(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    made = offer(env, "pdf-tools", NEWCO, actor="ada", reason="x")
    handed(env, to="https://github.com/third/skills")
    assert SkillTransfer.objects.get(pk=made.pk).state == "withdrawn"
    with pytest.raises(TransferRefused, match="not open any more"):
        accept(env, made.pk, actor="grace")


def test_of_an_acceptance_and_an_operator_at_once_one_counts(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    made = offer(env, "pdf-tools", NEWCO, actor="ada", reason="x")
    start = threading.Barrier(2)
    ended: list[str] = []

    def race(act: Any) -> None:
        try:
            start.wait()
            act()
            ended.append("done")
        except TransferRefused:
            ended.append("refused")
        finally:
            connections.close_all()

    third = "https://github.com/third/skills"
    acts = [lambda: accept(env, made.pk, actor="grace"), lambda: handed(env, to=third)]
    threads = [threading.Thread(target=race, args=[act]) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    handle = SkillEntry.objects.get(slug="pdf-tools").publisher_handle
    # Accepted first, it may be handed on; handed over first, the offer is void.
    assert (sorted(ended), handle) in [(["done", "refused"], "third"), (["done", "done"], "third")]
    assert HistoryEvent.objects.filter(action="transferred").count() == ended.count("done")


def test_a_withheld_skill_is_not_told_to_others(env: WorkerEnv) -> None:
    publish_example(env, name="pdf-tools")
    said = [
        offered(owner_of(env, "mallory", "mallory"), skill=name).content.decode().count("could hand over")
        for name in ("pdf-tools",)
    ]
    assert said == [1]


@pytest.mark.parametrize("withhold", [quarantine_skill, delete_skill])
def test_what_operators_withhold_its_owner_does_not_hand_on(env: WorkerEnv, withhold: Callable[..., object]) -> None:
    publish_example(env, name="pdf-tools")
    ada, grace = owner_of(env, "acme", "ada"), owner_of(env, "newco", "grace")
    assert offered(ada).status_code == 302
    number = SkillTransfer.objects.get().pk
    withhold(env, "pdf-tools", actor="op", reason="steals keys")
    accepted = grace.post(PAGE, {"accept": number})
    assert (accepted.status_code, "steals keys" in accepted.content.decode()) == (422, True)
    assert ada.post(PAGE, {"withdraw": number}).status_code == 302
    assert offered(ada).status_code == 422
    assert SkillEntry.objects.get(slug="pdf-tools").publisher_handle == "acme"
    # It is still theirs from where it was, so nothing of it is published anew.
    assert why_withdrawn(env, SkillEntry.objects.get(slug="pdf-tools").identity)
    # Operators hand it over, and once it is back its owner does.
    assert handed(env).state == "done"
    restore(env, "pdf-tools", actor="op", reason="mended")
    assert offered(grace, receiver="github.com/acme").status_code == 302


@pytest.mark.parametrize("how", ["closed", "works elsewhere"])
def test_what_a_closed_account_has_offered_is_taken_by_nobody(env: WorkerEnv, how: str) -> None:
    publish_example(env, name="pdf-tools")
    ada, grace = owner_of(env, "acme", "ada"), owner_of(env, "newco", "grace")
    assert offered(ada).status_code == 302
    user: Any = get_user_model()._default_manager.get(username="ada")
    if how == "closed":
        user.is_active = False
        user.save()
    else:
        StaffLimit.objects.create(user=user, environments=["another"])
    number = SkillTransfer.objects.get().pk
    accepted = grace.post(PAGE, {"accept": number})
    assert (accepted.status_code, "is closed here" in accepted.content.decode()) == (422, True)
    assert SkillEntry.objects.get(slug="pdf-tools").publisher_handle == "acme"
    assert grace.post(PAGE, {"decline": number}).status_code == 302
