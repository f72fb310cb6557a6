"""Submissions of a private skill, of each folder that it was in: for a stranger none of them is there."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from marketplace.catalog import HowMany, quarantine_skill
from marketplace.models import SkillEntry
from marketplace.models.ownership import SkillPlace
from marketplace.skills.audience import show_to
from marketplace.skills.publishers import skill_identity
from marketplace.skills.sources import note_folders, skills_of_repository
from submissions.discovered import DiscoveredSkill, Discovery
from submissions.intake import Accepted, Outcome, accept_one
from submissions.jobs.progress import progress_of
from submissions.jobs.records import read_job
from submissions.jobs.work import run_job, start_job
from submissions.states import State
from submissions.store.near_ids import near_ids
from submissions.store.records import Submission
from submissions.store.shown import hidden_among
from submissions.store.state_counts import count_states
from submissions.told import NOT_TOLD, told_answers
from tests.marketplace.factories import publish_example
from tests.submissions.factories import make_submission
from tests.submissions.front_door import repository, skills, submitted_one, worked_off
from vskill.accounts.audiences import MEMBERS, seen_as
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
REPOSITORY = "https://git.corp.example/hr-people/quarry"
COMMIT = "1" * 40
BODY = "Count them."


def submission_at(env: WorkerEnv, path: str, state: State, **fields: Any) -> Submission:
    """Write a submission of a folder of the repository."""
    identity = skill_identity(REPOSITORY, path)
    return make_submission(
        env, state, repoUrl=REPOSITORY, skillName="heron", skillPath=path, identity=identity, **fields
    )


def publish_at(env: WorkerEnv, path: str, *, audience: str = MEMBERS, **fields: Any) -> None:
    """Publish the skill from a folder of the repository."""
    given = {"name": "heron", "body": BODY, **fields}
    publish_example(env, repo_url=REPOSITORY, skill_path=path, audience=audience, **given)


def leave(env: WorkerEnv, path: str) -> None:
    """Write that the repository has a folder no more."""
    note_folders(env, skills_of_repository(env, REPOSITORY), [path], COMMIT)


def move_under_way(env: WorkerEnv) -> Accepted:
    """Publish the skill from one folder and submit it from the one that it moves to."""
    publish_at(env, "skills/a")
    leave(env, "skills/a")
    found = DiscoveredSkill(
        "skills/b", "heron", "Does it.", (), "2" * 64, slug="heron", continues="skills/a", notes=("It was skills/a.",)
    )
    return accept_one(env, Discovery(REPOSITORY, COMMIT, (found,), "HEAD"), found, source="api", actor="api")


def seen(env: WorkerEnv, submission_id: str) -> list[bool]:
    """Return on which surfaces whoever asks now sees the one submission."""
    client = Client(raise_request_exception=False)
    lists = (f"/queue?repository={REPOSITORY}", "/api/v1/submissions")
    pages = (f"/submissions/{submission_id}", f"/api/v1/submissions/{submission_id}")
    return [
        *(client.get(path).status_code == 200 for path in pages),
        *(submission_id in client.get(path).content.decode() for path in lists),
        submission_id in near_ids(env, submission_id[:20]),
        sum(one.number for one in count_states(env).values()) > 0,
        not hidden_among(env, [submission_id]),
    ]


def hidden_everywhere(env: WorkerEnv, submission_id: str) -> bool:
    """Return whether a stranger finds the one submission nowhere, and a member does."""
    with seen_as((MEMBERS,)):
        assert not hidden_among(env, [submission_id])
    return not any(seen(env, submission_id))


def test_what_was_rejected_in_a_folder_stays_hidden_after_the_skill_has_moved(env: WorkerEnv) -> None:
    refused = submission_at(env, "skills/a", State.REJECTED)
    assert all(seen(env, refused.id))
    publish_at(env, "skills/a")
    assert hidden_everywhere(env, refused.id)
    leave(env, "skills/a")
    publish_at(env, "skills/b", continues="skills/a", body="Count them twice.")
    assert SkillEntry.objects.get().skill_path == "skills/b"
    assert hidden_everywhere(env, refused.id)
    # The same content in a third folder leaves no version behind that tells of the second one.
    between = submission_at(env, "skills/b", State.REJECTED)
    leave(env, "skills/b")
    publish_at(env, "skills/c", continues="skills/b", body="Count them twice.")
    assert hidden_among(env, [refused.id, between.id]) == {refused.id, between.id}


def test_a_move_under_way_is_hidden_before_and_after_it_fails(env: WorkerEnv) -> None:
    answer = move_under_way(env)
    assert answer.outcome is Outcome.CREATED
    assert answer.submission is not None
    assert hidden_everywhere(env, answer.submission.id)
    [told] = told_answers(env, REPOSITORY, [answer])
    assert (told.submission, told.reason, told.skill.notes, told.skill.slug) == (None, NOT_TOLD, (), "")


def test_a_copy_of_a_private_skill_is_hidden_and_a_skill_of_its_own_there_is_not(env: WorkerEnv) -> None:
    publish_at(env, "skills/a")
    copied = submission_at(env, "skills/b", State.PUBLISHED, slug="heron", version="0.0.1")
    publish_at(env, "skills/b", submission_id=copied.id)
    assert SkillEntry.objects.count() == 1
    assert hidden_everywhere(env, copied.id)
    own = submission_at(env, "skills/b", State.PUBLISHED, slug="stork")
    publish_at(env, "skills/b", name="stork", audience="", body="Other.", submission_id=own.id)
    assert hidden_among(env, [own.id, copied.id]) == {copied.id}


def test_what_was_submitted_of_a_skill_that_everybody_sees_is_there_wherever_it_was(env: WorkerEnv) -> None:
    answer = move_under_way(env)
    assert answer.submission is not None
    show_to(env, "heron", "", actor="operator", reason="everybody may have it")
    assert all(seen(env, answer.submission.id))


def test_who_submits_the_new_folder_of_a_quarantined_skill_does_not_learn_why(env: WorkerEnv) -> None:
    publish_at(env, "skills/a")
    leave(env, "skills/a")
    quarantine_skill(env, "heron", actor="operator", reason="SECRET")
    found = DiscoveredSkill("skills/b", "heron", "Does it.", (), "2" * 64, continues="skills/a")
    discovery = Discovery(REPOSITORY, COMMIT, (found,), "HEAD")
    answer = accept_one(env, discovery, found, source="api", actor="api")
    assert "SECRET" in answer.reason
    [told] = told_answers(env, REPOSITORY, [answer])
    assert (told.outcome, told.reason) == (Outcome.NOT_TOLD, NOT_TOLD)
    with seen_as((MEMBERS,)):
        [told] = told_answers(env, REPOSITORY, [answer])
    assert "SECRET" in told.reason


@pytest.mark.parametrize("withheld", [False, True])
def test_a_stranger_is_answered_the_same_whatever_became_of_a_private_skill(
    client: Client, env: WorkerEnv, tmp_path: Path, withheld: bool
) -> None:
    url = repository(tmp_path, skills("one"))
    submission = async_to_sync(submitted_one)(env, url)
    async_to_sync(worked_off)(env, submission)
    show_to(env, "one", MEMBERS, actor="operator", reason="ours")
    if withheld:
        quarantine_skill(env, "one", actor="operator", reason="SECRET")
    answer = client.post("/api/v1/submissions", {"repoUrl": url}, content_type="application/json")
    assert answer.status_code == 200
    told = {"outcome": "not_told", "skillName": "one", "skillPath": "one", "reason": NOT_TOLD, "notes": []}
    assert answer.json()["submissions"] == [told]
    assert {"alreadyVerified", "blocked", "duplicate"}.isdisjoint(answer.json())


@pytest.mark.parametrize("continues", [None, "skills/a"])
def test_a_job_that_tells_why_a_private_skill_is_withheld_is_not_there_for_a_stranger(
    client: Client, env: WorkerEnv, continues: str | None
) -> None:
    publish_at(env, "skills/a")
    leave(env, "skills/a")
    quarantine_skill(env, "heron", actor="operator", reason="SECRET")
    path = "skills/b" if continues else "skills/a"
    found = DiscoveredSkill(path, "heron", "Does it.", (), "2" * 64, continues=continues)
    job = start_job(env, Discovery(REPOSITORY, COMMIT, (found,), "HEAD"), source="api", actor="api")
    async_to_sync(run_job)(env, job.id)
    with seen_as((MEMBERS,)):
        [line] = async_to_sync(progress_of)(env, read_job(env, job.id)).lines
    assert "SECRET" in line.skill.reason
    assert line.skill.submission_id == ""
    for address in (f"/jobs/{job.id}", f"/api/v1/jobs/{job.id}"):
        answer = client.get(address)
        assert (answer.status_code, b"SECRET" in answer.content) == (404, False), address
    show_to(env, "heron", "", actor="operator", reason="everybody may have it")
    assert "SECRET" in client.get(f"/jobs/{job.id}").content.decode()


@pytest.mark.skipif(connections["default"].vendor != "sqlite", reason="the plan of PostgreSQL follows its statistics")
@pytest.mark.parametrize("audiences", [(), (MEMBERS,), (MEMBERS, "team:7")])
def test_what_is_shown_is_looked_up_for_each_submission_and_never_among_all_skills(
    env: WorkerEnv, audiences: tuple[str, ...]
) -> None:
    for number, audience in enumerate(("", MEMBERS, "team:7", "team:8")):
        publish_at(env, f"skills/{number}", audience=audience, name=f"heron-{number}", body=f"Body {number}.")
        submission_at(env, f"skills/{number}", State.REJECTED, audience=audience)
    with seen_as(audiences), CaptureQueriesContext(connections["default"]) as asked:
        assert sum(one.number for one in count_states(env).values()) == 1 + len(audiences)
    counts = [one["sql"] for one in asked.captured_queries if "skillplace" in one["sql"]]
    # One for each state that has any.
    assert len(counts) == 1
    for statement in counts:
        with connections["default"].cursor() as cursor:
            cursor.execute("EXPLAIN QUERY PLAN " + statement.replace("%", "%%"), [])
            steps = [str(row[-1]) for row in cursor.fetchall()]
        assert "submission_by_state (namespace=? AND state=?)" in " ".join(steps)
        # A step that reads all skills of an environment, or keeps a list of those that are hidden.
        whole = [one for one in steps if one.startswith(("SCAN marketplace", "LIST")) or one.endswith("(namespace=?)")]
        assert whole == [], steps


def test_of_many_submissions_few_are_counted_where_some_are_hidden(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("submissions.store.state_counts.MOST_COUNTED", 4)
    monkeypatch.setattr("submissions.store.state_counts.MOST_SHOWN_COUNTED", 2)
    publish_at(env, "skills/0")
    for number in range(4):
        submission_at(env, f"skills/{number}", State.REJECTED)
    # Up to the bound, each is looked at.
    assert count_states(env)[State.REJECTED] == HowMany(3)
    submission_at(env, "skills/4", State.REJECTED)
    assert count_states(env)[State.REJECTED] == HowMany(2, or_more=True)
    with seen_as((MEMBERS,)):
        assert count_states(env)[State.REJECTED] == HowMany(4, or_more=True)


def test_an_earlier_release_has_left_enough_to_find_the_places(env: WorkerEnv) -> None:
    publish_at(env, "skills/a")
    leave(env, "skills/a")
    publish_at(env, "skills/b", continues="skills/a")
    leave(env, "skills/b")
    publish_at(env, "skills/c to d", continues="skills/b", body="Count them twice.")
    publish_at(env, "skills/copy", body="Count them twice.")
    submission_at(env, "skills/next", State.REJECTED, continues="skills/b")
    wanted = {skill_identity(REPOSITORY, f"skills/{one}") for one in ("a", "b", "copy", "next")}
    SkillPlace.objects.all().delete()
    for _twice in range(2):
        for name in ("marketplace.migrations.0026_places", "submissions.migrations.0015_moves_under_way"):
            migration: Any = import_module(name)
            migration.fill(apps, connections[env.database].schema_editor())
    assert wanted <= set(SkillPlace.objects.values_list("identity", flat=True))
