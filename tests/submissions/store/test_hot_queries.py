"""What pages ask for again and again: read from an index, and no more of it than is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import AsyncClient

from submissions.models import QueueMessage, SubmissionEntry, SubmissionTransition
from submissions.presentation import queue_place
from submissions.states import ACTIVE_STATES, State
from submissions.store.queries import get_submission_index, recently_decided
from submissions.store.state_counts import count_states
from submissions.store.transitions import submission_key, submission_namespace, transition
from tests.submissions.factories import make_submission, make_submissions
from tests.submissions.front_door import repository, skills, submitted
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now
from vskill.kv.threads import writers

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = timedelta(minutes=1)


@contextmanager
def _plans() -> Iterator[list[str]]:
    """Collect how SQLite will answer each query of the body, with its parameters bound as they really are."""
    plans: list[str] = []

    def explained(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if sql.startswith("SELECT") and "submissions_" in sql:
            cursor = context["connection"].connection.cursor()
            cursor.execute("EXPLAIN QUERY PLAN " + sql.replace("%s", "?").replace("%%", "%"), params)
            plans.extend(row[3] for row in cursor.fetchall())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explained):
        yield plans


@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads the plans of SQLite")
@pytest.mark.parametrize(
    ("ask", "index"),
    [
        (count_states, "COVERING INDEX submission_by_state"),
        (get_submission_index, "INDEX submission_newest"),
        (lambda env: get_submission_index(env, states=ACTIVE_STATES, oldest_first=True), "INDEX submission_by_state"),
        (lambda env: get_submission_index(env, repo_url="https://a.example/b"), "INDEX submission_of_repository"),
        (recently_decided, "INDEX transition_newest"),
    ],
    ids=["counts", "newest", "waiting", "of a repository", "decided"],
)
def test_a_page_reads_what_it_shows_and_not_every_submission(
    env: WorkerEnv, ask: Callable[[WorkerEnv], Any], index: str
) -> None:
    with _plans() as plans:
        ask(env)

    assert index in next(plan for plan in plans if "submissions_" in plan)
    assert not [plan for plan in plans if plan.startswith("SCAN submissions_") or plan.endswith("B-TREE FOR ORDER BY")]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="reads the plans of SQLite")
def test_the_estimate_reads_the_newest_steps_and_not_every_step(env: WorkerEnv) -> None:
    submission = make_submission(env, message=True)
    with _plans() as plans:
        queue_place(env, submission.id)

    assert [plan for plan in plans if "INDEX transition_newest" in plan]
    assert not [plan for plan in plans if plan.startswith("SCAN") or plan.endswith("B-TREE FOR ORDER BY")]


def test_what_waits_is_listed_across_states_in_the_order_of_its_arrival(env: WorkerEnv) -> None:
    ages = {State.AUTO_APPROVED: 3, State.RECEIVED: 1, State.TIER1_SCANNING: 2}
    made = {make_submission(env, state, age=age * MINUTE).id: age for state, age in ages.items()}
    make_submission(env, State.PUBLISHED)

    oldest = get_submission_index(env, states=ACTIVE_STATES, oldest_first=True, limit=2)
    newest = get_submission_index(env, states=ACTIVE_STATES, limit=2)

    assert [made[entry.submission_id] for entry in oldest] == [3, 2]
    assert [made[entry.submission_id] for entry in newest] == [1, 2]


async def test_a_state_that_nobody_knows_leaves_the_others_on_the_page(
    async_client: AsyncClient, env: WorkerEnv
) -> None:
    odd, even = await writers.run(make_submissions, env, 2)
    key = submission_key(odd)
    value = (await submission_namespace(env).get(key)).value
    await submission_namespace(env).put(key, {**value, "state": "SLEEPING"})
    page = await async_client.get("/queue", {"repository": value["repoUrl"]})

    assert page.status_code == 200
    assert even in page.content.decode()
    assert odd not in page.content.decode()


async def test_of_a_skill_that_was_submitted_often_the_newest_attempt_alone_is_read(
    async_client: AsyncClient, env: WorkerEnv, tmp_path: Path
) -> None:
    url = repository(tmp_path, skills("one"))
    [answer] = await submitted(env, url)
    assert answer.submission is not None
    identity = answer.submission.text("identity")
    await writers.run(make_submissions, env, 20, State.REJECTED, identity=identity)
    loaded: list[SubmissionEntry] = []
    real = SubmissionEntry.from_db.__func__  # type: ignore[attr-defined]  # a classmethod, as Django calls it

    def counted(cls: type[SubmissionEntry], *values: Any) -> SubmissionEntry:
        entry: SubmissionEntry = real(cls, *values)
        loaded.append(entry)
        return entry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SubmissionEntry, "from_db", classmethod(counted))
        page = await async_client.post("/submit", {"repository_url": url})

    assert "Refused" in page.content.decode()
    assert len(loaded) == 1


def _checked(env: WorkerEnv, seconds: float) -> str:
    """Make a submission whose last check took so long and whose first one began an hour ago; return its id."""
    submission = make_submission(env)
    for state in (State.TIER1_SCANNING, State.RECEIVED, State.TIER1_SCANNING, State.ON_HOLD):
        submission = transition(env, submission, state, reason="", actor="test", trigger="test")
    steps = SubmissionTransition.objects.filter(submission_id=submission.id).order_by("sequence")
    now = database_now(env.database)
    for step, ago in zip(steps, (60 * MINUTE, 59 * MINUTE, timedelta(seconds=seconds), timedelta()), strict=True):
        SubmissionTransition.objects.filter(pk=step.pk).update(created_at=now - ago)
    return submission.id


def test_the_estimate_is_the_median_of_the_last_checks_times_those_ahead_and_itself(env: WorkerEnv) -> None:
    for seconds in (2, 4, 9):
        _checked(env, seconds)
    first, second = make_submission(env, message=True), make_submission(env, message=True)

    assert queue_place(env, first.id) == {"position": 1, "ahead": 0, "estimate_seconds": 4.0}
    assert queue_place(env, second.id) == {"position": 2, "ahead": 1, "estimate_seconds": 8.0}


def test_what_is_in_work_has_no_place_among_those_that_wait(env: WorkerEnv) -> None:
    working, waiting = make_submission(env, message=True), make_submission(env, message=True)
    lease = database_now(env.database) + MINUTE
    QueueMessage.objects.filter(subject=working.id).update(leased_until=lease, lease_token="held")

    assert queue_place(env, working.id) is None
    place = queue_place(env, waiting.id)
    assert place is not None
    assert place["ahead"] == 0
