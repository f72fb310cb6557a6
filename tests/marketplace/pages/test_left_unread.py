"""What no engine has read may do anything: no page and no answer claims that nothing was recognised in it."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client

from marketplace.skill_sets.editing import Choice, Told, create_collection
from tests.marketplace.pages.page_factory import contract, finding, publish
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

NOTHING = "Nothing that the checks recognised"
POSSIBLE = "Also possible: unread files"
ENGINES = (
    {"name": "structure", "version": "1", "status": "complete"},
    {"name": "skilltotal", "version": "0.84.0", "status": "partial"},
)
UNREAD = finding(kind="coverage", severity="info", file="data.txt", line=None, title="File not read")


def words(path: str) -> str:
    answer = Client().get(path)
    assert answer.status_code == 200, answer.content.decode()[:500]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.unescape(answer.content.decode())))


def publish_big(env: WorkerEnv, name: str = "big-skill", **details: Any) -> None:
    given = {"verdict": "held", "engines": ENGINES, "findings": (UNREAD,), "files": {"data.txt": b"data"}, **details}
    publish(env, name, **given)


def row_of(page: str, name: str) -> str:
    return page.partition(f" {name}")[2].partition("seconds ago")[0]


def test_what_was_left_unread_is_not_said_to_do_nothing(env: WorkerEnv) -> None:
    publish_big(env, contract=contract(does=[], chains=[]))
    publish(env, "read-skill", contract=contract(does=[], chains=[]))
    page = words("/skills/big-skill")
    assert "Asks for Not known" in page
    assert (NOTHING in page, "nothing seen" in page, "Files: not known" in page) == (False, False, True)
    assert "What it does is not known" in page
    assert "What it refers to is not known" in page
    assert NOTHING in words("/skills/read-skill")

    compared = words("/compare?skill=big-skill&skill=read-skill")
    assert re.search(r"Files differs +— nothing seen", compared)
    table = words("/skills?view=table")
    assert ("Not known" in row_of(table, "big-skill"), NOTHING in row_of(table, "big-skill")) == (True, False)
    assert NOTHING in row_of(table, "read-skill")


def test_what_was_seen_beside_unread_files_is_not_all_that_is_possible(env: WorkerEnv) -> None:
    publish_big(env, contract=contract(), capabilities=("network_egress",))
    page = words("/skills/big-skill")
    for said in (POSSIBLE, "Network: touches it", "Commands: not known"):
        assert said in page
    assert POSSIBLE in row_of(words("/skills?view=table"), "big-skill")


def test_a_check_that_did_not_finish_and_no_check_at_all_leave_it_open_as_well(env: WorkerEnv) -> None:
    publish_big(env, "unfinished", verdict="inconclusive", findings=())
    publish_big(env, "trusted", verdict="unscanned", engines=(), findings=())
    table = words("/skills?view=table")
    for name in ("unfinished", "trusted"):
        assert "Asks for Not known" in words(f"/skills/{name}")
        assert "Not known" in row_of(table, name)


def test_a_picture_that_no_engine_reads_in_what_has_passed_leaves_nothing_open(env: WorkerEnv) -> None:
    publish_big(env, verdict="notes")
    assert NOTHING in words("/skills/big-skill")
    assert NOTHING in row_of(words("/skills?view=table"), "big-skill")


def test_a_set_and_programs_are_told_so_too(env: WorkerEnv) -> None:
    publish_big(env, contract=contract(does=[], chains=[]))
    publish_big(env, "big-and-seen", capabilities=("network_egress",))
    publish(env, "read-skill")
    chosen = tuple(Choice(name) for name in ("big-skill", "big-and-seen", "read-skill"))
    create_collection(env, "team", Told("Team", "For tests.", chosen), actor="test", reason="test")
    page = words("/collections/team")
    assert [page.count(one) for one in ("Not known", POSSIBLE, NOTHING)] == [1, 1, 1]
    assert "Files: not known" in page

    told = Client().get("/api/v1/collections/team").json()
    assert [(one["capabilities"], one["leftUnread"]) for one in told["skills"]] == [
        (None, True), (["network_egress"], True), ([], False)
    ]  # fmt: skip
    assert (told["touches"]["Network"], told["touches"]["Files"]) == (True, None)
    for name, unread in (("big-skill", True), ("read-skill", False)):
        assert Client().get(f"/api/v1/skills/{name}").json()["leftUnread"] is unread


def test_a_version_that_was_left_unread_may_do_what_another_does(env: WorkerEnv) -> None:
    publish(env, "big-skill", capabilities=("network_egress",))
    publish_big(env, capabilities=("network_egress", "shell_execution"))
    for path in ("/skills/big-skill", "/skills/big-skill/compare"):
        page = words(path)
        assert "Also possible: unread files of one of both versions." in page
        assert re.search(r"It now also\s+Runs commands", page)
