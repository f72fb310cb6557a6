"""Migrations of data: what an earlier release wrote is read by this one, and nothing is lost."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import pytest
from django.apps import apps
from django.db import connections

from marketplace.skills.publishers import skill_identity
from submissions.models import SubmissionEntry
from submissions.states import State
from submissions.store.queries import history, read_submission
from tests.submissions.factories import damage, make_submission
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db

MIGRATION: Final[Any] = import_module("submissions.migrations.0004_one_identity")


def migrate(env: WorkerEnv) -> None:
    MIGRATION.unify_identities(apps, connections[env.database].schema_editor())


@pytest.mark.parametrize(
    ("repo_url", "skill_path"),
    [
        ("https://gitlab.com/Acme/Skills", "skills/one"),
        ("https://github.com/acme/skills.git", ""),
        ("https://git.example.org/Acme/Skills", "./One"),
        ("https://git.example.org:8443/Acme/Skills/", "a//b"),
        ("file:///srv/Skills.git", "one"),
    ],
)
def test_the_identity_of_the_migration_is_the_one_of_the_marketplace(repo_url: str, skill_path: str) -> None:
    assert MIGRATION.skill_identity(repo_url, skill_path) == skill_identity(repo_url, skill_path)


def test_an_identity_of_an_earlier_release_becomes_the_one_of_the_marketplace(env: WorkerEnv) -> None:
    address = "https://gitlab.com/Acme/Skills"
    wanted = skill_identity(address, "skills/hello")
    old = make_submission(env, State.PUBLISHED, repoUrl=address, identity="0" * 64)
    migrate(env)
    migrated = read_submission(env, old.id)
    assert (migrated.text("identity"), migrated.state, migrated.version) == (wanted, State.PUBLISHED, old.version + 1)
    assert SubmissionEntry.objects.get(key=f"sub:{old.id}").identity == wanted
    migrate(env)
    assert read_submission(env, old.id) == migrated


def test_of_two_live_submissions_of_one_skill_the_newest_goes_on_and_the_other_says_why(env: WorkerEnv) -> None:
    upper, lower = "https://gitlab.com/Acme/Skills", "https://gitlab.com/acme/skills"
    wanted = skill_identity(lower, "skills/hello")
    older = make_submission(env, repoUrl=upper, identity="0" * 64)
    newer = make_submission(env, State.ON_HOLD, repoUrl=lower, identity=wanted)
    ended = make_submission(env, State.REJECTED, repoUrl=upper, identity="0" * 64)
    migrate(env)
    assert read_submission(env, newer.id) == newer
    assert read_submission(env, ended.id).state is State.REJECTED
    left = read_submission(env, older.id)
    assert (left.state, left.text("identity")) == (State.DEQUEUED, wanted)
    assert newer.id in left.text("reason")
    [step] = history(env, older.id)
    assert (step.from_state, step.to_state, step.reason) == (State.RECEIVED, State.DEQUEUED, left.text("reason"))


def test_a_value_that_cannot_be_read_is_left_for_verify_store(env: WorkerEnv) -> None:
    address = "https://gitlab.com/Acme/Skills"
    old = make_submission(env, State.PUBLISHED, repoUrl=address, identity="0" * 64)
    damage(env, old.id)
    migrate(env)
    entry = SubmissionEntry.objects.get(key=f"sub:{old.id}")
    assert (entry.value, entry.identity) == ('{"cut off', skill_identity(address, "skills/hello"))
