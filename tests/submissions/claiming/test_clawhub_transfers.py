"""The calls by which clawhub hands skills over: who may, who may not, and what each is told."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from marketplace.models import HistoryEvent, SkillEntry, SkillTransfer
from marketplace.ownership.claims import end, grant, owner_claim
from marketplace.ownership.transfers import OFFER_DAYS
from marketplace.skills.audience import show_to
from tests.marketplace.factories import publish_example
from tests.submissions.api.test_described import DOCUMENT, check
from tests.submissions.claiming.handing import PAGE, offered
from tests.submissions.front_door import drain
from tests.submissions.uploads.uploading import FILES, publish_form, token_for
from vskill.access_tokens.scopes import Scope
from vskill.environments import WorkerEnv
from vskill.models import RoleGrant

pytestmark = pytest.mark.django_db(transaction=True)

SKILL = "/api/v1/skills/pdf-tools"
OFFER = {"toUserHandle": "newco", "message": "we split up"}


def owner(env: WorkerEnv, name: str, publisher: str, handle: str = "") -> str:
    """Return a token for publish of an account that has claimed a publisher."""
    token = token_for(env, name)
    user = get_user_model()._default_manager.get(username=name)
    grant(env, user, publisher, handle or publisher.rpartition("/")[2], actor="op", reason="known to us")
    return token


def operator(env: WorkerEnv, *scopes: Scope) -> str:
    token = token_for(env, "root-op", *scopes)
    user = get_user_model()._default_manager.get(username="root-op")
    RoleGrant.objects.get_or_create(
        user=user,
        environment=env.name,
        defaults={"role": "operator", "granted_by": "root", "granted_at": timezone.now()},
    )
    return token


def send(token: str | None, path: str, body: Any = None, method: str = "POST") -> Any:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    more: dict[str, Any] = {} if body is None else {"data": body, "content_type": "application/json"}
    answer: Any = getattr(Client(), method.lower())(path, headers=headers, **more)
    assert answer.status_code == 200 or answer.headers["Content-Type"].startswith("text/plain")
    route = re.sub(r"/skills/[^/?]+", "/skills/{slug}", path.partition("?")[0])
    if method.lower() in DOCUMENT["paths"].get(route, {}) or answer.status_code not in (404, 405):
        check(route, method.lower(), answer)
    return answer


def listed(token: str, direction: str) -> list[Any]:
    found: list[Any] = send(token, f"/api/v1/transfers/{direction}", method="GET").json()["transfers"]
    return found


@pytest.fixture
def ada(env: WorkerEnv) -> str:
    """Return a token of the owner of acme, which has a skill from a repository."""
    publish_example(env, name="pdf-tools")
    return owner(env, "ada", "github.com/acme")


@pytest.fixture
def grace(env: WorkerEnv) -> str:
    """Return a token of the owner of newco."""
    return owner(env, "grace", "github.com/newco")


def test_an_offer_is_listed_on_both_sides_and_accepted(ada: str, grace: str) -> None:
    made = send(ada, f"{SKILL}/transfer?ownerHandle=acme", OFFER)
    assert made.status_code == 200
    told = made.json()
    assert (told["ok"], told["toUserHandle"], told["transferred"]) == (True, "newco", False)
    assert SkillEntry.objects.get(slug="pdf-tools").publisher_handle == "acme"

    (incoming,), (outgoing,) = listed(grace, "incoming"), listed(ada, "outgoing")
    assert (incoming["fromUser"]["handle"], incoming["message"]) == ("acme", "we split up")
    assert (outgoing["toUser"]["handle"], outgoing["expiresAt"]) == ("newco", told["expiresAt"])
    assert outgoing["expiresAt"] - outgoing["requestedAt"] == OFFER_DAYS * 86_400_000
    assert (listed(grace, "outgoing"), listed(ada, "incoming")) == ([], [])

    assert send(grace, f"{SKILL}/transfer/accept").json() == {"ok": True, "skillSlug": "pdf-tools"}
    row = SkillEntry.objects.get(slug="pdf-tools")
    assert (row.publisher_handle, row.repo_url) == ("newco", "https://github.com/newco/skills")
    assert listed(grace, "incoming") == []
    actors = HistoryEvent.objects.filter(action__startswith="transfer").order_by("pk").values_list("action", "actor")
    assert list(actors) == [("transfer offered", "ada"), ("transferred", "grace")]


@pytest.mark.parametrize(("decision", "state"), [("reject", "declined"), ("cancel", "withdrawn")])
def test_an_offer_is_rejected_by_one_and_cancelled_by_the_other(
    ada: str, grace: str, decision: str, state: str
) -> None:
    send(ada, f"{SKILL}/transfer", OFFER)
    right, wrong = (grace, ada) if decision == "reject" else (ada, grace)
    assert send(wrong, f"{SKILL}/transfer/{decision}").status_code == 404
    assert send(right, f"{SKILL}/transfer/{decision}").status_code == 200
    assert SkillTransfer.objects.get().state == state
    assert send(right, f"{SKILL}/transfer/{decision}").status_code == 404
    assert send(ada, f"{SKILL}/transfer", OFFER).status_code == 200


def test_who_may_not_is_told_so_and_nothing_is_written(env: WorkerEnv, ada: str, grace: str) -> None:
    eve = owner(env, "eve", "github.com/eve")
    before = HistoryEvent.objects.count()
    for token, path, body, status, words in [
        (None, "/transfer", OFFER, 401, "token"),
        ("vsk_" + "0" * 40, "/transfer", OFFER, 401, ""),
        (token_for(env, "ada", Scope.SUBMIT, Scope.READ), "/transfer", OFFER, 403, "made for"),
        (eve, "/transfer", {"toUserHandle": "eve"}, 403, "claimed its publisher"),
        (grace, "/transfer", OFFER, 403, "claimed its publisher"),
        (token_for(env, "ada", Scope.OPERATE), "/transfer", OFFER, 403, "claimed its publisher"),
        (operator(env, Scope.PUBLISH), "/transfer", OFFER, 403, "claimed its publisher"),
        (ada, "/transfer", {"toUserHandle": "nobody-has-this"}, 404, "Nobody here has claimed"),
        (ada, "/transfer", {"toUserHandle": "grace"}, 404, "Nobody here has claimed"),
        (ada, "/transfer", {}, 400, "toUserHandle"),
        (ada, "/transfer", {"toUserHandle": 7}, 400, "texts"),
        (ada, "/transfer", {"toUserHandle": "newco", "message": []}, 400, "texts"),
        (ada, "/transfer", {"toUserHandle": "acme"}, 409, "already"),
        (ada, "/transfer?ownerHandle=newco", OFFER, 404, "Skill not found"),
        (ada, "/transfer/accept", None, 404, "no open offer"),
        (ada, "/transfer/nothing", None, 405, "does not offer"),
    ]:
        answer = send(token, f"{SKILL}{path}", body)
        assert answer.status_code == status, (path, body, answer.content)
        assert words in answer.content.decode(), (path, body)
    assert send(ada, "/api/v1/skills/nothing/transfer", OFFER).content == b"Skill not found"
    assert send(ada, "/api/v1/skills/nothing/transfer/accept").content == b"Skill not found"
    assert not SkillTransfer.objects.exists()

    send(ada, f"{SKILL}/transfer", OFFER)
    for token in (None, eve, ada, token_for(env, "grace", Scope.READ), operator(env, Scope.PUBLISH)):
        for decision in ("accept", "reject"):
            assert send(token, f"{SKILL}/transfer/{decision}").status_code in (401, 403, 404), decision
    for direction in ("incoming", "outgoing"):
        assert listed(eve, direction) == []
        assert send(None, f"/api/v1/transfers/{direction}", method="GET").status_code == 401
        assert send(grace, f"/api/v1/transfers/{direction}", {}, method="POST").status_code == 405
    assert SkillTransfer.objects.get().state == "offered"
    assert SkillEntry.objects.get(slug="pdf-tools").publisher_handle == "acme"
    assert HistoryEvent.objects.count() == before + 1


def test_what_a_giver_writes_deceives_no_reader(ada: str, grace: str) -> None:
    send(ada, f"{SKILL}/transfer", {"toUserHandle": "newco", "message": "all \u202efine\x1b[2J\0"})
    (incoming,) = listed(grace, "incoming")
    assert incoming["message"] == "all [U+202E]fine[U+001B][2J\N{REPLACEMENT CHARACTER}"
    (told,) = HistoryEvent.objects.filter(action="transfer offered").values_list("reason", flat=True)
    assert told == f"@acme to @newco: {incoming['message']}"


def test_an_offer_lapses_and_can_be_made_again(ada: str, grace: str) -> None:
    send(ada, f"{SKILL}/transfer", OFFER)
    assert send(ada, f"{SKILL}/transfer", OFFER).status_code == 409
    SkillTransfer.objects.update(created_at=timezone.now() - timedelta(days=OFFER_DAYS, minutes=1))
    assert send(grace, f"{SKILL}/transfer/accept").status_code == 404
    assert listed(grace, "incoming") == []
    client = Client()
    client.force_login(get_user_model()._default_manager.get(username="grace"))
    assert client.post(PAGE, {"accept": SkillTransfer.objects.get().pk}).status_code == 422
    assert send(ada, f"{SKILL}/transfer", OFFER).status_code == 200
    assert list(SkillTransfer.objects.order_by("pk").values_list("state", flat=True)) == ["lapsed", "offered"]


def test_who_has_both_publishers_or_operates_hands_over_at_once(env: WorkerEnv, ada: str, grace: str) -> None:
    ada_user = get_user_model()._default_manager.get(username="ada")
    grant(env, ada_user, "git.corp.example/team", "team.git.corp.example", actor="op", reason="known")
    told = send(ada, f"{SKILL}/transfer", {"toUserHandle": "@team--git--corp--example"}).json()
    assert (told["transferred"], told["toPublisherHandle"]) == (True, "team.git.corp.example")
    assert SkillEntry.objects.get(slug="pdf-tools").repo_url == "https://git.corp.example/team/skills"

    assert grace
    told = send(operator(env, Scope.OPERATE), f"{SKILL}/transfer", OFFER).json()
    assert told["transferred"] is True
    assert SkillEntry.objects.get(slug="pdf-tools").publisher_handle == "newco"


def test_an_upload_stays_one_and_its_new_owner_uploads_the_next_version(env: WorkerEnv, grace: str) -> None:
    ada = token_for(env)
    assert publish_form(ada).status_code == 202
    async_to_sync(drain)(env)
    assert send(ada, f"{SKILL}/transfer?ownerHandle=ada.account", OFFER).status_code == 200
    assert len(listed(ada, "outgoing")) == 1
    client = Client()
    client.force_login(get_user_model()._default_manager.get(username="ada"))
    assert "pdf-tools to newco" in client.get(PAGE).content.decode()
    assert send(grace, f"{SKILL}/transfer/accept").status_code == 200

    changed = {**FILES, "new.txt": b"new"}
    assert publish_form(ada, changed, version="1.1.0").status_code == 409
    assert publish_form(grace, changed, version="1.1.0", ownerHandle="newco").status_code == 202
    async_to_sync(drain)(env)
    row = SkillEntry.objects.get(slug="pdf-tools")
    assert (row.publisher_handle, row.latest_version) == ("newco", "1.1.0")


def test_an_account_with_the_name_of_an_earlier_one_hands_over_nothing_of_it(env: WorkerEnv, grace: str) -> None:
    ada = token_for(env)
    publish_form(ada)
    async_to_sync(drain)(env)
    send(ada, f"{SKILL}/transfer", OFFER)
    get_user_model()._default_manager.filter(username="ada").update(username="ada-before")
    second = token_for(env)
    assert listed(second, "outgoing") == []
    assert send(second, f"{SKILL}/transfer/cancel").status_code == 404
    client = Client()
    client.force_login(get_user_model()._default_manager.get(username="ada"))
    assert client.post(PAGE, {"withdraw": SkillTransfer.objects.get().pk}).status_code == 422
    assert SkillTransfer.objects.get().state == "offered"
    assert offered(client).status_code == 422


def test_an_offer_ends_with_the_claim_of_its_receiver(env: WorkerEnv, ada: str, grace: str) -> None:
    send(ada, f"{SKILL}/transfer", OFFER)
    claim = owner_claim(env, "github.com/newco")
    assert claim is not None
    end(env, claim, actor="op", reason="it was not theirs")
    assert send(grace, f"{SKILL}/transfer/accept").status_code == 404
    assert listed(grace, "incoming") == []


def test_a_skill_that_is_shown_to_others_is_not_told_of(env: WorkerEnv, ada: str, grace: str) -> None:
    eve = owner(env, "eve", "github.com/eve")
    show_to(env, "pdf-tools", "team:7", actor="op", reason="for a team")
    assert send(ada, f"{SKILL}/transfer", OFFER).status_code == 200
    for path in ("/transfer", "/transfer/accept", "/transfer/cancel"):
        assert send(eve, f"{SKILL}{path}", OFFER).content == b"Skill not found", path
    assert send(grace, f"{SKILL}/transfer/accept").status_code == 200
