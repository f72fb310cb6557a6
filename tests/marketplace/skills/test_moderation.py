"""Yank, quarantine, delete, restore: what each hides, that it needs a reason, and that the history has it."""

from __future__ import annotations

import pytest

from marketplace.catalog import (
    SkillNotFound,
    delete_skill,
    find_skill_sync,
    find_version_sync,
    quarantine_skill,
    quarantine_version,
    rename_skill,
    restore,
    restore_version,
    unyank,
    yank_version,
)
from marketplace.models import HistoryEvent, SkillEntry
from marketplace.skills.moderation import ReasonMissing
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db
WHO = {"actor": "ada", "reason": "because"}


@pytest.fixture
def two_versions(env: WorkerEnv) -> None:
    """Publish a skill in two versions."""
    publish_example(env, declared_version="1.0.0", description="First words.")
    publish_example(env, declared_version="2.0.0", description="Second words.", verdict="notes")


def latest() -> tuple[str, str, str]:
    row = SkillEntry.objects.get(slug="hello-skill")
    return row.latest_version, row.description, row.verdict


@pytest.mark.usefixtures("two_versions")
def test_a_yank_moves_latest_to_the_version_before(env: WorkerEnv) -> None:
    yank_version(env, "hello-skill", "2.0.0", **WHO)
    assert latest() == ("1.0.0", "First words.", "clear")

    unyank(env, "hello-skill", "2.0.0", **WHO)
    assert latest() == ("2.0.0", "Second words.", "notes")


@pytest.mark.usefixtures("two_versions")
def test_a_yanked_version_is_still_fetched_by_its_number_and_a_quarantined_one_is_not(env: WorkerEnv) -> None:
    yank_version(env, "hello-skill", "1.0.0", **WHO)
    quarantine_version(env, "hello-skill", "2.0.0", **WHO)
    skill = find_skill_sync(env, "hello-skill")
    assert skill is not None
    yanked = find_version_sync(env, skill, "1.0.0")
    assert yanked is not None
    assert yanked.yank_reason == "because"
    assert find_version_sync(env, skill, "2.0.0") is None
    assert skill.latest_version == ""

    restore_version(env, "hello-skill", "2.0.0", **WHO)
    assert latest()[0] == "2.0.0"


def test_a_quarantine_outlasts_new_versions_until_it_is_taken_back(env: WorkerEnv) -> None:
    publish_example(env)
    quarantine_skill(env, "hello-skill", **WHO)
    publish_example(env, body="Changed.")
    assert find_skill_sync(env, "hello-skill") is None

    restore(env, "hello-skill", **WHO)
    skill = find_skill_sync(env, "hello-skill")
    assert skill is not None
    assert (skill.latest_version, skill.record.visibility_reason) == ("0.0.2", "")


def test_a_deleted_skill_keeps_its_name(env: WorkerEnv) -> None:
    publish_example(env)
    delete_skill(env, "hello-skill", **WHO)

    assert publish_example(env, repo_url="https://github.com/mallory/x").slug == "mallory-hello-skill"
    restore(env, "hello-skill", **WHO)
    assert find_skill_sync(env, "hello-skill") is not None


@pytest.mark.usefixtures("two_versions")
def test_everything_is_remembered(env: WorkerEnv) -> None:
    yank_version(env, "hello-skill", "1.0.0", **WHO)
    unyank(env, "hello-skill", "1.0.0", **WHO)
    rename_skill(env, "hello-skill", "greeter", **WHO)
    quarantine_skill(env, "greeter", **WHO)
    restore(env, "greeter", **WHO)

    events = HistoryEvent.objects.order_by("id").values_list("subject", "action", "version", "actor")
    assert list(events) == [
        ("skill:hello-skill", "published", "1.0.0", "test"),
        ("skill:hello-skill", "published", "2.0.0", "test"),
        ("skill:hello-skill", "yanked", "1.0.0", "ada"),
        ("skill:hello-skill", "unyanked", "1.0.0", "ada"),
        ("skill:greeter", "renamed", "", "ada"),
        ("skill:greeter", "quarantined", "", "ada"),
        ("skill:greeter", "restored", "", "ada"),
    ]


def test_nothing_is_withdrawn_without_a_reason(env: WorkerEnv) -> None:
    publish_example(env)
    with pytest.raises(ReasonMissing):
        quarantine_skill(env, "hello-skill", actor="ada", reason=" ")
    with pytest.raises(ReasonMissing):
        yank_version(env, "hello-skill", "0.0.1", actor="ada", reason="")
    assert latest()[0] == "0.0.1"


def test_what_is_not_there_cannot_be_withdrawn(env: WorkerEnv) -> None:
    publish_example(env)
    rename_skill(env, "hello-skill", "greeter", **WHO)
    for name in ("nope", "alias:hello-skill", "hello-skill"):
        with pytest.raises(SkillNotFound):
            quarantine_skill(env, name, **WHO)
    with pytest.raises(SkillNotFound):
        yank_version(env, "greeter", "9.9.9", **WHO)
    assert HistoryEvent.objects.count() == 2
