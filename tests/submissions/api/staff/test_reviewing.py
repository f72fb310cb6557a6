"""What waits for a reviewer, read and decided by programs: as in the admin, and only once."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connections

from marketplace.skills.blocklist import is_blocked
from submissions.appeals import appeal
from submissions.operations import reject
from submissions.states import State
from submissions.store.queries import history, read_submission
from submissions.store.signs import keep_signs
from submissions.verification.findings import Finding, FindingKind, Severity
from tests.submissions.api.staff.staff import REVIEW, call, token_of
from tests.submissions.factories import make_submission, make_submissions
from vskill.access_tokens.scopes import Scope
from vskill.accounts.roles import Role
from vskill.environments import WorkerEnv
from vskill.kv.cursors import encode_cursor

pytestmark = pytest.mark.django_db(transaction=True)

CONTENT = "c" * 64
URL = "https://github.com/acme/skills"


@pytest.fixture
def token(env: WorkerEnv) -> str:
    return token_of(env, Role.REVIEWER, Scope.REVIEW)


def held(env: WorkerEnv, strength: int = 300, **fields: Any) -> str:
    fields = {"contentHash": CONTENT, "reviewStrength": strength, **fields}
    return make_submissions(env, 1, State.ON_HOLD, **fields)[0]


def decide(token: str, one: str, decision: str = "approve", **changed: Any) -> Any:
    body = {"decision": decision, "reason": "looked at it", "seen": 1, **changed}
    return call(token, "POST", f"{REVIEW}/{one}/decision", body)


def read_all(token: str, query: str = "", meanwhile: Any = None) -> list[str]:
    """Return the ids of the whole queue, read page by page of two; ``meanwhile`` happens after the first."""
    found: list[str] = []
    cursor = ""
    while True:
        page = call(token, "GET", f"{REVIEW}?limit=2&cursor={quote(cursor)}{query}").json()
        found += [one["id"] for one in page["items"]]
        if page["nextCursor"] is None:
            return found
        cursor = page["nextCursor"]
        if meanwhile is not None:
            meanwhile()
            meanwhile = None


def test_the_queue_is_read_page_by_page_exactly_while_others_are_held_and_decided(env: WorkerEnv, token: str) -> None:
    strong, old = held(env, 420), held(env, 310, age=timedelta(days=2))
    twins = make_submissions(env, 3, State.ON_HOLD, contentHash=CONTENT, reviewStrength=310)
    weak = held(env, 100)
    make_submission(env, State.PUBLISHED)
    make_submission(env, State.REJECTED)
    whole = [strong, old, *twins, weak]
    assert read_all(token) == whole
    new: list[str] = []

    def change() -> None:
        new.extend([held(env, 420), held(env, 50)])
        assert decide(token, strong, "reject").status_code == 200
        assert decide(token, twins[1], "reject").status_code == 200

    assert read_all(token, meanwhile=change) == [strong, old, twins[0], twins[2], weak, new[1]]


def test_the_filters_of_the_admin_narrow_it_and_a_cursor_fits_its_own_list_alone(env: WorkerEnv, token: str) -> None:
    ids = [held(env, verdict="held", repoUrl=URL) for _number in range(3)]
    other = held(env, verdict="held_high", repoUrl="https://github.com/other/skills")
    keep_signs(env, other, [Finding("hidden-text", Severity.HIGH, "Does it", engine="skilltotal")])
    assert read_all(token, "&verdict=held") == read_all(token, "&owner=github.com/acme") == ids
    assert read_all(token, "&rule=hidden-text") == read_all(token, "&engine=skilltotal") == [other]
    first = call(token, "GET", f"{REVIEW}?limit=1&verdict=held").json()
    assert (first["waiting"], first["items"][0]["strength"]) == (3, "high")
    forged = encode_cursor("x", 300, "2026-01-01T00:00:00+00:00", 1)
    for query in (f"cursor={first['nextCursor']}", f"cursor={quote(forged)}", "cursor=x", "limit=many", "state=held"):
        refused = call(token, "GET", f"{REVIEW}?{query}")
        assert (refused.status_code, set(refused.json())) == (400, {"error", "message"}), query


def test_one_is_read_with_its_findings_and_what_holds_it(env: WorkerEnv, token: str) -> None:
    one = held(env)
    sign = Finding("secret-sent", Severity.HIGH, "Sends a key", engine="vskill", kind=FindingKind.RISK)
    keep_signs(env, one, [sign])
    answer = call(token, "GET", f"{REVIEW}/{one}")
    told = answer.json()
    assert (told["state"], told["seen"], told["toReview"], told["appealed"]) == ("ON_HOLD", 1, True, False)
    assert (told["findings"], told["history"]) == ([], [])
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in answer.headers
    missing = call(token, "GET", f"{REVIEW}/sub_none")
    assert (missing.status_code, missing.json()["error"]) == (404, "submission_not_found")


def test_a_decision_is_the_one_of_the_admin_and_names_who_took_it(env: WorkerEnv, token: str) -> None:
    good, bad = held(env), held(env)
    approved = decide(token, good).json()
    assert (approved["state"], approved["approvedBy"], approved["toReview"]) == ("AUTO_APPROVED", "the-reviewer", False)
    assert decide(token, bad, "reject", reason="it sends keys away").json()["state"] == "REJECTED"
    [step] = history(env, bad)
    assert (step.actor, step.trigger, step.reason) == ("the-reviewer", "operator", "it sends keys away")


def test_what_was_seen_is_decided_about_and_a_repeated_call_is_told_what_became_of_it(
    env: WorkerEnv, token: str
) -> None:
    one = held(env)
    assert decide(token, one).status_code == 200
    for decision in ("approve", "reject"):
        again = decide(token, one, decision)
        assert (again.status_code, again.json()["error"]) == (409, "version_conflict")
        told = again.json()["submission"]
        assert (told["state"], told["approvedBy"], told["seen"]) == ("AUTO_APPROVED", "the-reviewer", 2)
    # What nobody decides about is left as it is, whatever the version.
    late = decide(token, one, "reject", seen=2)
    assert (late.status_code, late.json()["error"]) == (409, "not_in_review")
    assert len(history(env, one)) == 1
    unscanned = held(env, contentHash="")
    assert decide(token, unscanned).json()["error"] == "never_scanned"


@pytest.mark.parametrize(
    "changed",
    [
        {"decision": "yes"},
        {"decision": None},
        {"reason": ""},
        {"reason": "  "},
        {"reason": "x" * 1001},
        {"reason": "\ud800"},
        {"reason": 7},
        {"seen": None},
        {"seen": "1"},
        {"seen": True},
        {"seen": 0},
        {"seen": 10**18},
        {"waive": ["all"]},
    ],
)
def test_what_cannot_be_meant_decides_nothing(env: WorkerEnv, token: str, changed: dict[str, Any]) -> None:
    one = held(env)
    refused = decide(token, one, **{"decision": "approve", **changed})
    assert (refused.status_code, refused.json()["error"]) == (400, "bad_request")
    assert read_submission(env, one).state is State.ON_HOLD


def test_the_lists_of_operators_need_an_operator_and_a_token_that_operates(env: WorkerEnv, token: str) -> None:
    one = held(env)
    both = (Scope.REVIEW, Scope.OPERATE)
    refused = {
        token: "insufficient_scope",
        token_of(env, Role.OPERATOR, Scope.REVIEW): "insufficient_scope",
        token_of(env, Role.REVIEWER, *both): "forbidden",
    }
    for lacking, code in refused.items():
        for decision in ("block", "known-bad"):
            answer = decide(lacking, one, decision)
            assert (answer.status_code, answer.json()["error"]) == (403, code)
    assert read_submission(env, one).state is State.ON_HOLD
    assert is_blocked(env, URL, CONTENT) is None
    assert decide(token_of(env, Role.OPERATOR, *both), one, "block").json()["state"] == "BLOCKED"
    assert is_blocked(env, URL, CONTENT) is not None


def test_an_appeal_comes_first_and_is_answered(env: WorkerEnv, token: str) -> None:
    weak, strong = held(env, 100), held(env, 400)
    reject(env, weak, actor="somebody", reason="no")
    appeal(env, weak, "It only reads the file that it is given.")
    [first, second] = call(token, "GET", REVIEW).json()["items"]
    assert (first["id"], first["strength"], second["id"]) == (weak, "appeal: low", strong)
    upheld = decide(token, weak, "reject", seen=first["seen"], reason="it does more").json()
    assert (upheld["state"], upheld["appeal"]["answer"], upheld["appeal"]["words"]) == (
        "REJECTED",
        "upheld",
        "it does more",
    )


def take_back(token: str, one: str, seen: int) -> Any:
    return call(token, "POST", f"{REVIEW}/{one}/undo", {"reason": "a mistake", "seen": seen})


def test_a_decision_is_taken_back_by_whoever_took_it_until_something_followed(env: WorkerEnv, token: str) -> None:
    other = token_of(env, Role.REVIEWER, Scope.REVIEW, name="other")
    for decision in ("approve", "reject"):
        one = held(env)
        assert take_back(token, one, 1).json()["error"] == "cannot_undo"
        assert decide(token, one, decision).status_code == 200
        not_own = take_back(other, one, 2)
        assert (not_own.status_code, not_own.json()["error"]) == (409, "cannot_undo")
        assert take_back(token, one, 1).json()["submission"]["seen"] == 2
        back = take_back(token, one, 2).json()
        assert (back["state"], back["toReview"], back["approvedBy"]) == ("ON_HOLD", True, None)
        assert history(env, one)[-1].actor == "the-reviewer"
        # And it is decided about again.
        assert decide(other, one, "reject", seen=back["seen"]).status_code == 200
    published = make_submission(env, State.PUBLISHED, contentHash=CONTENT).id
    refused = take_back(token, published, 1).json()
    assert "Quarantine the version" in refused["message"]


def test_of_reviewers_who_decide_at_once_one_does(env: WorkerEnv) -> None:
    tokens = [token_of(env, Role.REVIEWER, Scope.REVIEW, name=f"reviewer-{number}") for number in range(4)]
    one = held(env)
    start = threading.Barrier(len(tokens))
    answers: list[tuple[int, str]] = []

    def race(token: str, decision: str) -> None:
        try:
            start.wait()
            answer = decide(token, one, decision)
            told = answer.json()
            answers.append((answer.status_code, told.get("submission", told)["state"]))
        finally:
            connections.close_all()

    threads = [
        threading.Thread(target=race, args=[token, ("approve", "reject")[number % 2]])
        for number, token in enumerate(tokens)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(status for status, _state in answers) == [200, 409, 409, 409]
    # Everybody is told the same: what became of it.
    assert {state for _status, state in answers} == {str(read_submission(env, one).state)}
    assert len(history(env, one)) == 1
