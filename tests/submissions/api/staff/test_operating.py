"""What operators do to skills and submissions, done by programs: as in the admin, and never over what is unseen."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connections
from django.test import Client

from marketplace.models import HistoryEvent
from marketplace.skills.moderation import quarantine_skill
from submissions.queue.pause import pause
from submissions.states import State
from submissions.store.queries import history, read_submission
from tests.marketplace.factories import publish_example
from tests.submissions.api.staff.staff import OPERATE, call, token_of
from tests.submissions.factories import make_submission, messages_of
from vskill.access_tokens.scopes import Scope
from vskill.accounts.roles import Role
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

SKILL = f"{OPERATE}/skills/hello-skill"
ARCHIVE = "/skills/hello-skill/download/0.0.1.zip"


@pytest.fixture
def token(env: WorkerEnv) -> str:
    return token_of(env, Role.OPERATOR, Scope.OPERATE)


def operate(token: str, path: str, operation: str, seen: int | None = None, **more: Any) -> Any:
    """Do something to what is there now, or to what was ``seen``."""
    present = call(token, "GET", path).json()["seen"] if seen is None else seen
    return call(token, "POST", path, {"operation": operation, "reason": "they asked", "seen": present, **more})


def test_a_skill_and_a_version_are_withdrawn_and_brought_back(env: WorkerEnv, token: str) -> None:
    publish_example(env)
    publish_example(env, body="It has changed.")
    stranger = Client()
    for away, back in (("quarantine", "restore"), ("delete", "restore")):
        withdrawn = operate(token, SKILL, away).json()
        assert (withdrawn["slug"], withdrawn["standing"] != "visible") == ("hello-skill", True)
        assert stranger.get(ARCHIVE).status_code in (404, 410)
        assert operate(token, SKILL, back).json()["standing"] == "visible"
        assert stranger.get(ARCHIVE).status_code == 200
    assert operate(token, SKILL, "yank", version="0.0.2").json()["latestVersion"] == "0.0.1"
    assert operate(token, SKILL, "quarantine-version", version="0.0.1").json()["latestVersion"] is None
    told = call(token, "GET", SKILL).json()
    assert [(one["version"], one["yanked"], one["quarantined"]) for one in told["versions"]] == [
        ("0.0.2", "they asked", None),
        ("0.0.1", None, "they asked"),
    ]
    assert {one["actor"] for one in told["history"][:6]} == {"the-operator"}
    assert told["history"][0]["action"] == "version quarantined"
    assert operate(token, SKILL, "restore-version", version="0.0.1").json()["latestVersion"] == "0.0.1"
    assert operate(token, SKILL, "unyank", version="0.0.2").json()["latestVersion"] == "0.0.2"


def test_the_versions_of_a_skill_have_pages(env: WorkerEnv, token: str) -> None:
    for number in range(5):
        publish_example(env, body=f"Number {number}.")
    found, cursor = [], ""
    while True:
        page = call(token, "GET", f"{SKILL}?limit=2&cursor={quote(cursor)}").json()
        found += [one["version"] for one in page["versions"]]
        if not (cursor := page["nextCursor"] or ""):
            break
        publish_example(env, body=f"Meanwhile {len(found)}.")
    assert found == [f"0.0.{number}" for number in (5, 4, 3, 2, 1)]
    assert call(token, "GET", f"{SKILL}?cursor=x").status_code == 400


def test_what_changed_since_it_was_seen_is_left_and_told(env: WorkerEnv, token: str) -> None:
    publish_example(env)
    seen = call(token, "GET", SKILL).json()["seen"]
    quarantine_skill(env, "hello-skill", actor="somebody", reason="first")
    for operation in ("restore", "delete"):
        late = operate(token, SKILL, operation, seen=seen)
        assert (late.status_code, late.json()["error"]) == (409, "version_conflict")
        assert (late.json()["skill"]["standing"], late.json()["skill"]["seen"] > seen) == ("quarantined", True)
    assert HistoryEvent.objects.latest("pk").actor == "somebody"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"operation": "explode"}, 400),
        ({"operation": "yank"}, 400),
        ({"operation": "yank", "version": ["0.0.1"]}, 400),
        ({"operation": "yank", "version": "9.9.9"}, 404),
        ({"operation": "quarantine", "reason": ""}, 400),
        ({"operation": "quarantine", "seen": None}, 400),
        ({"operation": "quarantine", "all": True}, 400),
    ],
)
def test_what_cannot_be_meant_changes_no_skill(env: WorkerEnv, token: str, body: dict[str, Any], status: int) -> None:
    publish_example(env)
    seen = call(token, "GET", SKILL).json()["seen"]
    events = HistoryEvent.objects.count()
    assert call(token, "POST", SKILL, {"reason": "why", "seen": seen, **body}).status_code == status
    assert HistoryEvent.objects.count() == events
    for name in ("none", "alias:x", "x" * 600):
        assert call(token, "GET", f"{OPERATE}/skills/{name}").status_code == 404


def test_of_operators_at_once_one_withdraws(env: WorkerEnv) -> None:
    publish_example(env)
    tokens = [token_of(env, Role.OPERATOR, Scope.OPERATE, name=f"operator-{number}") for number in range(4)]
    seen = call(tokens[0], "GET", SKILL).json()["seen"]
    events = HistoryEvent.objects.count()
    start = threading.Barrier(len(tokens))
    statuses: list[int] = []

    def race(token: str) -> None:
        try:
            start.wait()
            statuses.append(operate(token, SKILL, "quarantine", seen=seen).status_code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=race, args=[token]) for token in tokens]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 409, 409, 409]
    assert HistoryEvent.objects.count() == events + 1


def test_a_stuck_submission_is_put_back_once_and_taken_out(env: WorkerEnv, token: str) -> None:
    one = make_submission(env, State.TIER1_SCANNING).id
    address = f"{OPERATE}/submissions/{one}"
    assert messages_of(env, one) == []
    put_back = operate(token, address, "requeue")
    assert (put_back.json()["state"], put_back.json()["seen"]) == ("TIER1_SCANNING", 2)
    assert len(messages_of(env, one)) == 1
    late = operate(token, address, "requeue", seen=1)
    assert (late.status_code, late.json()["submission"]["seen"]) == (409, 2)
    [step] = call(token, "GET", address).json()["history"]
    assert (step["actor"], step["reason"]) == ("the-operator", "they asked")

    waiting = make_submission(env, State.RECEIVED, message=True).id
    taken = operate(token, f"{OPERATE}/submissions/{waiting}", "dequeue").json()
    assert taken["state"] == "DEQUEUED"
    # It goes on from there as often as somebody wants it to.
    assert operate(token, f"{OPERATE}/submissions/{waiting}", "requeue").json()["state"] == "RECEIVED"
    published = make_submission(env, State.PUBLISHED).id
    refused = operate(token, f"{OPERATE}/submissions/{published}", "requeue")
    assert (refused.status_code, refused.json()["error"]) == (409, "illegal_transition")
    assert operate(token, address, "approve", seen=2).status_code == 400
    assert len(history(env, published)) == 0


def test_of_operators_at_once_one_puts_it_back(env: WorkerEnv) -> None:
    tokens = [token_of(env, Role.OPERATOR, Scope.OPERATE, name=f"operator-{number}") for number in range(4)]
    one = make_submission(env, State.REJECTED).id
    start = threading.Barrier(len(tokens))
    statuses: list[int] = []

    def race(token: str) -> None:
        try:
            start.wait()
            statuses.append(operate(token, f"{OPERATE}/submissions/{one}", "requeue", seen=1).status_code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=race, args=[token]) for token in tokens]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 409, 409, 409]
    assert (len(history(env, one)), len(messages_of(env, one))) == (1, 1)


def test_a_submission_whose_skill_has_another_on_its_way_stays(env: WorkerEnv, token: str) -> None:
    make_submission(env, State.RECEIVED, identity="same")
    ended = make_submission(env, State.REJECTED, identity="same").id
    refused = operate(token, f"{OPERATE}/submissions/{ended}", "requeue")
    assert (refused.status_code, refused.json()["error"]) == (409, "newer_submission")
    assert read_submission(env, ended).state is State.REJECTED


def test_the_numbers_of_the_queue_are_read(env: WorkerEnv, token: str) -> None:
    make_submission(env, State.RECEIVED, message=True)
    make_submission(env, State.ON_HOLD)
    told = call(token, "GET", f"{OPERATE}/queue").json()
    assert (told["waiting"], told["leased"], told["parked"], told["consumers"], told["paused"]) == (1, 0, 0, 0, None)
    assert told["states"]["ON_HOLD"] == {"count": 1, "orMore": False}
    pause(env, who="ada", why="an upgrade")
    assert call(token, "GET", f"{OPERATE}/queue").json()["paused"]["by"] == "ada"
