"""The admin, as an operator uses it."""

from __future__ import annotations

import contextlib
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from marketplace.skills.blocklist import BlockKind, is_blocked
from submissions.models import QueueMessage, SubmissionEntry
from submissions.operations import OPERATIONS
from submissions.recovery.sweep import recover_stuck
from submissions.states import STATES, SWEPT_STATES, State
from submissions.store.queries import history, read_submission
from tests.submissions.factories import make_submission, make_submissions
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.clock import database_now

pytestmark = pytest.mark.django_db

LIST = "/admin/submissions/submissionentry/"


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("operator"))
    return client


def _operate(client: Client, name: str, *ids: str, reason: str = "looked at it") -> None:
    rows = SubmissionEntry.objects.filter(key__in=[f"sub:{one}" for one in ids])
    chosen = {"action": name, "_selected_action": [row.pk for row in rows]}
    confirm = client.post(LIST, chosen)
    assert confirm.status_code == 302
    page = client.get(confirm["Location"])
    assert "Reason" in page.content.decode()
    done = client.post(confirm["Location"], {"reason": reason})
    assert done.status_code == (302 if reason else 200)


def test_a_held_submission_is_approved_with_a_reason(operator: Client, env: WorkerEnv) -> None:
    held = make_submission(env, State.ON_HOLD, contentHash="c" * 64)
    _operate(operator, "approve", held.id)

    assert read_submission(env, held.id).state is State.AUTO_APPROVED
    (step,) = history(env, held.id)
    assert (step.actor, step.reason, step.trigger) == ("operator", "looked at it", "operator")
    assert QueueMessage.objects.get(subject=held.id).priority > 0


def test_hidden_characters_of_a_reason_are_spelled_out(operator: Client, env: WorkerEnv) -> None:
    held = make_submission(env, State.ON_HOLD, contentHash="c" * 64)
    _operate(operator, "approve", held.id, reason="looked \u202eat it")

    assert read_submission(env, held.id).text("approvalReason") == "looked [U+202E]at it"


def test_nothing_happens_without_a_reason(operator: Client, env: WorkerEnv) -> None:
    held = make_submission(env, State.ON_HOLD, contentHash="c" * 64)
    _operate(operator, "approve", held.id, reason="")

    assert read_submission(env, held.id).state is State.ON_HOLD


@pytest.mark.parametrize(
    ("operation", "before", "after"),
    [
        ("requeue", State.TIER1_FAILED, State.RECEIVED),
        ("requeue", State.ON_HOLD, State.RECEIVED),
        ("reject", State.ON_HOLD, State.REJECTED),
        ("dequeue", State.RECEIVED, State.DEQUEUED),
        ("requeue", State.BLOCKED, State.RECEIVED),
        # Transitions that the table of states does not have are refused.
        ("approve", State.REJECTED, State.REJECTED),
        ("approve", State.ON_HOLD, State.ON_HOLD),
        ("approve", State.TIER1_SCANNING, State.TIER1_SCANNING),
        ("approve", State.TIER2_SCANNING, State.TIER2_SCANNING),
        ("reject", State.PUBLISHED, State.PUBLISHED),
        ("block", State.PUBLISHED, State.PUBLISHED),
        ("block", State.TIER1_SCANNING, State.TIER1_SCANNING),
        # Nothing was checked, so there is nothing to block.
        ("block", State.ON_HOLD, State.ON_HOLD),
        ("requeue", State.PUBLISHED, State.PUBLISHED),
    ],
)
def test_operations_follow_the_table_of_states(
    operator: Client, env: WorkerEnv, operation: str, before: State, after: State
) -> None:
    submission = make_submission(env, before)
    _operate(operator, operation, submission.id)

    assert read_submission(env, submission.id).state is after
    assert bool(history(env, submission.id)) is (before is not after)


def test_a_held_submission_is_refused_and_its_content_blocked_and_nothing_else(
    operator: Client, env: WorkerEnv
) -> None:
    held = make_submission(env, State.ON_HOLD, contentHash="c" * 64)
    source = str(held.value["repoUrl"])
    _operate(operator, "block", held.id, reason="it mails keys away")

    after = read_submission(env, held.id)
    assert (after.state, after.text("reason")) == (State.BLOCKED, "it mails keys away")
    [step] = history(env, held.id)
    assert (step.to_state, step.actor, step.trigger) == ("BLOCKED", "operator", "operator")
    found = is_blocked(env, "https://elsewhere.example.org/x/y", "c" * 64)
    assert found is not None
    assert (found.kind, found.reason, found.actor) == (BlockKind.CONTENT, "it mails keys away", "operator")
    assert is_blocked(env, source, "d" * 64) is None


def test_neither_a_block_nor_a_refusal_happens_alone(env: WorkerEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    held = make_submission(env, State.ON_HOLD, contentHash="c" * 64)

    def fail(*_args: Any, **_kwargs: Any) -> None:
        raise DatabaseError("the last write is refused")

    monkeypatch.setattr("submissions.operations._forget_failures", fail)
    with pytest.raises(DatabaseError):
        OPERATIONS["block"].run(env, held.id, actor="me", reason="why")
    assert read_submission(env, held.id) == held
    assert is_blocked(env, str(held.value["repoUrl"]), "c" * 64) is None


def test_who_may_not_block_is_not_offered_it(client: Client, env: WorkerEnv) -> None:
    held = make_submission(env, State.ON_HOLD, contentHash="c" * 64)
    user = User.objects.create_user("reviewer", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__endswith="submissionentry"))
    client.force_login(user)
    page = client.get(LIST).content.decode()
    assert "Refuse and block" not in page
    assert "Take out of the queue" in page
    row = SubmissionEntry.objects.get(key=f"sub:{held.id}")
    operate = reverse("admin:submissions_submissionentry_operate", args=["block"])
    assert client.post(operate, {"ids": row.pk, "reason": "why"}).status_code == 403
    assert read_submission(env, held.id) == held


def test_every_step_of_an_operator_in_the_table_of_states_has_an_operation(env: WorkerEnv) -> None:
    taken = set()
    for state in State:
        for operation in OPERATIONS.values():
            made = make_submission(env, state, contentHash="c" * 64)
            with contextlib.suppress(VskillError):
                taken.add((state, operation.run(env, made.id, actor="me", reason="why").state))
    in_table = {(state, following) for state, info in STATES.items() for following in info.by_operator}
    # That step is the undo of a reviewer, which is no operation on many: tests/submissions/review.
    assert in_table - {(State.REJECTED, State.ON_HOLD)} <= taken
    allowed = {(state, following) for state, info in STATES.items() for following in info.following}
    # What is on its way and is checked again stays what it is, with a new message.
    assert taken - in_table <= allowed | {(state, state) for state in State}


def test_one_refusal_does_not_stop_the_others(operator: Client, env: WorkerEnv) -> None:
    held = make_submission(env, State.ON_HOLD)
    published = make_submission(env, State.PUBLISHED)
    _operate(operator, "reject", held.id, published.id)
    page = operator.get(LIST).content.decode()

    assert read_submission(env, held.id).state is State.REJECTED
    assert read_submission(env, published.id).state is State.PUBLISHED
    assert "1 of 2 done" in page
    assert "cannot become REJECTED" in page


@pytest.mark.parametrize("ids", ["9" * 30, "9" * 5000, "x", "%00", ",,", "\u0663"])
def test_numbers_that_no_submission_has_choose_none(operator: Client, ids: str) -> None:
    operate = reverse("admin:submissions_submissionentry_operate", args=["approve"])

    response = operator.get(f"{operate}?ids={ids}")

    assert response.status_code == 200
    assert list(response.context["targets"]) == []


def test_a_viewer_sees_and_moves_nothing(client: Client, env: WorkerEnv) -> None:
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_submissionentry"))
    client.force_login(viewer)
    held = make_submission(env, State.ON_HOLD, contentHash="c" * 64)
    row = SubmissionEntry.objects.get()
    operate = reverse("admin:submissions_submissionentry_operate", args=["approve"])

    assert held.text("skillName") in client.get(LIST).content.decode()
    assert client.post(f"{operate}?ids={row.pk}", {"reason": "x"}).status_code == 403
    assert read_submission(env, held.id).state is State.ON_HOLD


def test_filters_and_searches_find_by_state_movement_id_address_and_name(operator: Client, env: WorkerEnv) -> None:
    stuck = make_submission(
        env, State.TIER1_SCANNING, age=timedelta(hours=1), skillName="stuck-one", repoUrl="https://git.example.org/a/b"
    )
    make_submission(env, State.PUBLISHED, skillName="fine-one", repoUrl="https://git.example.org/c/d")

    for query in (
        "state=TIER1_SCANNING",
        "movement=stuck",
        f"q={stuck.id}",
        f"q={stuck.id[:12]}",
        "q=https://git.example.org/a/",
        "q=git.example.org/a",
        "q=stuck-one",
    ):
        page = operator.get(f"{LIST}?{query}").content.decode()
        assert "stuck-one" in page, query
        assert "fine-one" not in page, query


@pytest.mark.parametrize("query", ["state=PUBLISHED", "movement=stuck", "q=sub_0a", "q=git.example.org/a", "q=a-name"])
def test_the_list_is_answered_by_indexes(operator: Client, env: WorkerEnv, query: str) -> None:
    for _ in range(3):
        make_submission(env)
    with CaptureQueriesContext(
        connection,
    ) as captured:
        operator.get(f"{LIST}?{query}")
    selects = [one["sql"] for one in captured if "submissions_submissionentry" in one["sql"] and "WHERE" in one["sql"]]
    assert selects
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET enable_seqscan = off")
        for sql in selects:
            cursor.execute(f"EXPLAIN {'QUERY PLAN ' if connection.vendor == 'sqlite' else ''}{sql}")
            plan = " ".join(str(row) for row in cursor.fetchall())
            assert "INDEX" in plan.upper(), plan
        if connection.vendor == "postgresql":
            cursor.execute("RESET enable_seqscan")


def test_an_entry_that_cannot_be_read_is_shown_as_it_is(operator: Client, env: WorkerEnv) -> None:
    submission = make_submission(env)
    SubmissionEntry.objects.using("default").write_row(value="{cut off", state="")
    row = SubmissionEntry.objects.get(key=f"sub:{submission.id}")
    page = operator.get(f"{LIST}{row.pk}/change/").content.decode()

    assert "{cut off" in page
    assert "unreadable" in page


def test_another_environment_is_not_seen(operator: Client, env: WorkerEnv) -> None:
    make_submission(env, skillName="ours")
    SubmissionEntry.objects.using("default").write_row(namespace="other")

    assert "ours" not in operator.get(LIST).content.decode()


def test_the_value_of_a_submission_is_shown_escaped(operator: Client, env: WorkerEnv) -> None:
    submission = make_submission(env, skillName="<script>alert(1)</script>")
    row = SubmissionEntry.objects.get(key=f"sub:{submission.id}")
    pages = operator.get(LIST).content.decode() + operator.get(f"{LIST}{row.pk}/change/").content.decode()

    assert "<script>alert" not in pages
    assert json.loads(row.value)["skillName"] in pages.replace("&lt;", "<").replace("&gt;", ">")


def test_messages_are_shown_by_where_they_stand(operator: Client, env: WorkerEnv) -> None:
    submission = make_submission(env, message=True)
    messages = "/admin/submissions/queuemessage/"

    assert submission.id in operator.get(f"{messages}?state=waiting").content.decode()
    assert submission.id not in operator.get(f"{messages}?state=parked").content.decode()
    assert submission.id in operator.get(f"{messages}?q={submission.id[:10]}").content.decode()


def test_an_operation_on_more_rows_than_an_address_can_name_is_confirmed_by_a_form(
    operator: Client, env: WorkerEnv
) -> None:
    make_submissions(env, 2500, State.ON_HOLD, contentHash="c" * 64)
    rows = list(SubmissionEntry.objects.values_list("pk", flat=True)[:50])
    page = operator.post(LIST, {"action": "reject", "_selected_action": rows, "select_across": "1", "index": "0"})
    shown = page.content.decode()
    assert page.status_code == 200
    assert "More than 1,000 were chosen" in shown
    ids = re.search(r'name="ids" value="([\d,]+)"', shown)
    assert ids is not None
    operate = reverse("admin:submissions_submissionentry_operate", args=["reject"])
    assert f'action="{operate}"' in shown
    again = operator.post(operate, {"ids": ids[1], "reason": ""})
    assert ids[1] in again.content.decode()
    assert operator.post(operate, {"ids": ids[1], "reason": "no"}).status_code == 302
    assert SubmissionEntry.objects.filter(state=State.REJECTED).count() == 1000


def test_only_a_submission_that_recovery_would_move_is_marked_as_stuck(operator: Client, env: WorkerEnv) -> None:
    make_submissions(env, 3, age=timedelta(hours=2), message=True)
    assert "(stuck)" not in operator.get(LIST).content.decode()
    make_submissions(env, 2, age=timedelta(hours=2))
    assert operator.get(LIST).content.decode().count("(stuck)") == 2


@pytest.mark.django_db(transaction=True)
def test_the_mark_the_filter_and_recovery_agree_on_what_is_stuck(operator: Client, env: WorkerEnv) -> None:
    """Every state, young and old, with each kind of message: one definition for all who say "stuck"."""
    for state in State:
        for age in (timedelta(minutes=4), timedelta(hours=2)):
            make_submission(env, state, age=age)
            for message in ("waiting", "leased", "parked"):
                made = make_submission(env, state, age=age, message=True)
                now = database_now(env.database)
                rows = QueueMessage.objects.filter(subject=made.id)
                if message == "leased":
                    rows.update(leased_until=now + timedelta(minutes=1), lease_token="t")
                if message == "parked":
                    rows.update(parked_at=now)
    page = operator.get(f"{LIST}?all=1").content.decode()
    rows_shown = re.findall(r"submissionentry/(\d+)/change/.*?field-age[^>]*>([^<]*)<", page, re.DOTALL)
    assert len(rows_shown) == SubmissionEntry.objects.count() == len(State) * 8
    filtered = operator.get(f"{LIST}?movement=stuck&all=1").content.decode()
    report = async_to_sync(recover_stuck)(env, dry_run=True)
    keys = dict(SubmissionEntry.objects.values_list("pk", "key"))

    by_recovery = {f"sub:{stuck.id}" for stuck, _result, _reason in report.results}
    assert len(by_recovery) == len(SWEPT_STATES) * 2
    assert {keys[int(pk)] for pk, age in rows_shown if "(stuck)" in age} == by_recovery
    assert {keys[int(pk)] for pk in re.findall(r"submissionentry/(\d+)/change/", filtered)} == by_recovery


def test_checking_again_beside_a_newer_submission_says_that_it_is_on_its_way(operator: Client, env: WorkerEnv) -> None:
    refused = make_submission(env, State.REJECTED, identity="i" * 64)
    newer = make_submission(env, State.RECEIVED, identity="i" * 64, message=True)
    row = SubmissionEntry.objects.get(key=f"sub:{refused.id}")
    operate = reverse("admin:submissions_submissionentry_operate", args=["requeue"])
    page = operator.post(f"{operate}?ids={row.pk}", {"reason": "please"}, follow=True).content.decode()
    assert f"Another submission of this skill, {newer.id}, is on its way" in page
    assert "UNIQUE" not in page
    assert read_submission(env, refused.id) == refused
