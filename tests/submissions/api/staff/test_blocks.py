"""The block list for programs of operators: read exactly, and changed by calls that can be repeated."""

from __future__ import annotations

import threading
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connections

from marketplace.models import HistoryEvent
from marketplace.skills.blocklist import BlockKind, add_block, is_blocked
from tests.submissions.api.staff.staff import OPERATE, call, token_of
from vskill.access_tokens.scopes import Scope
from vskill.accounts.roles import Role
from vskill.environments import WorkerEnv
from vskill.kv.cursors import encode_cursor

pytestmark = pytest.mark.django_db(transaction=True)

BLOCKS = f"{OPERATE}/blocks"
URL = "https://github.com/acme/skills"


@pytest.fixture
def token(env: WorkerEnv) -> str:
    return token_of(env, Role.OPERATOR, Scope.OPERATE)


def block(token: str, kind: str, value: str, reason: str = "it steals keys", end: str = "") -> Any:
    return call(token, "POST", f"{BLOCKS}{end}", {"kind": kind, "value": value, "reason": reason})


def test_a_value_is_blocked_once_and_taken_off_once(env: WorkerEnv, token: str) -> None:
    made = block(token, "repo", "acme/skills").json()
    assert (made["value"], made["actor"], made["changed"]) == (URL, "the-operator", True)
    assert is_blocked(env, URL) is not None
    again = block(token, "repo", f"{URL}.git", "another reason").json()
    assert (again["changed"], again["reason"]) == (False, "it steals keys")
    assert block(token, "repo", URL, "all is well", "/remove").json()["changed"] is True
    assert block(token, "repo", URL, "all is well", "/remove").json()["changed"] is False
    assert is_blocked(env, URL) is None
    events = HistoryEvent.objects.filter(subject__startswith="blocked:").values_list("action", "actor", "reason")
    assert sorted(events) == [
        ("blocked", "the-operator", "it steals keys"),
        ("unblocked", "the-operator", "all is well"),
    ]


def test_the_list_is_exact_while_values_are_blocked_and_taken_off(env: WorkerEnv, token: str) -> None:
    names = [f"github.com/evil-{letter}" for letter in "bdfhj"]
    for name in names:
        add_block(env, BlockKind.OWNER, name, actor="test", reason="evil")
    found, cursor = [], ""
    while True:
        page = call(token, "GET", f"{BLOCKS}?limit=2&cursor={quote(cursor)}").json()
        found += [one["value"] for one in page["items"]]
        if not (cursor := page["nextCursor"] or ""):
            break
        if len(found) == 2:
            # One before what was read and one behind; and one of what was read is gone.
            block(token, "owner", "github.com/evil-a")
            block(token, "owner", "github.com/evil-i")
            block(token, "owner", "github.com/evil-d", end="/remove")
    assert found == [*names[:4], "github.com/evil-i", names[4]]
    for forged in ("x", quote(encode_cursor("x", "blocked:owner:github.com/evil-b")), "%C3%A4"):
        refused = call(token, "GET", f"{BLOCKS}?cursor={forged}")
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_cursor")


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("name", "pdf-tools", "x"),
        ("repo", "no address", "x"),
        ("owner", "acme", "x"),
        ("content", "abc", "x"),
        ("content", "a" * 2000, "x"),
        ("content", "a" * 64, ""),
        ("repo", "https://[x", "x"),
    ],
)
def test_what_cannot_be_blocked_is_refused(env: WorkerEnv, token: str, kind: str, value: str, reason: str) -> None:
    for end in ("", "/remove"):
        refused = block(token, kind, value, reason, end)
        assert (refused.status_code, set(refused.json())) == (400, {"error", "message"})
    assert call(token, "GET", BLOCKS).json()["items"] == []


def test_of_operators_at_once_one_blocks(env: WorkerEnv) -> None:
    tokens = [token_of(env, Role.OPERATOR, Scope.OPERATE, name=f"operator-{number}") for number in range(4)]
    start = threading.Barrier(len(tokens))
    answers: list[Any] = []

    def race(token: str, reason: str) -> None:
        try:
            start.wait()
            answers.append(block(token, "owner", "github.com/evil", reason).json())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=race, args=[token, f"reason {n}"]) for n, token in enumerate(tokens)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one["changed"] for one in answers) == [False, False, False, True]
    assert len({(one["actor"], one["reason"]) for one in answers}) == 1
    assert HistoryEvent.objects.filter(action="blocked").count() == 1
