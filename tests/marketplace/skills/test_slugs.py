"""The slug rule, and the migration that brings older skills under it."""

from __future__ import annotations

import io
import json
import string
from typing import Any

import pytest
from django.core.management import call_command
from hypothesis import given
from hypothesis import strategies as st

from marketplace.catalog import SlugTaken, rename_skill, resolve_slug_sync
from marketplace.models import HistoryEvent, SkillEntry, SkillVersion
from marketplace.skills.answers import search_sync
from marketplace.skills.slug_migration import migrate_skill_slugs
from marketplace.skills.slugs import MAX_SLUG_LENGTH, base_slug, is_slug, slug_candidates
from marketplace.skills.store import skill_namespace
from tests.marketplace.factories import publish_example, write_entries
from vskill.environments import WorkerEnv


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("PDF Tools", "pdf-tools"),
        ("--a__b..c--", "a-b-c"),
        ("café", "caf"),
        ("İstanbul", "i-stanbul"),
        ("a" * 64, "a" * 64),
        ("C++ & C#", "c-c"),
    ],
)
def test_the_rule(name: str, slug: str) -> None:
    assert base_slug(name) == slug


@given(st.text())
def test_every_name_has_a_slug_that_follows_the_rule(name: str) -> None:
    slug = base_slug(name)
    assert set(slug) <= set(string.ascii_lowercase + string.digits + "-")
    assert 1 <= len(slug) <= MAX_SLUG_LENGTH
    assert not slug.startswith("-")
    assert not slug.endswith("-")
    assert "--" not in slug


@given(st.text())
def test_a_slug_is_its_own_slug(name: str) -> None:
    assert base_slug(base_slug(name)) == base_slug(name)


@given(st.text(), st.text(), st.text(), st.text(min_size=1))
def test_every_candidate_is_a_slug(name: str, owner: str, repository: str, identity: str) -> None:
    candidates = list(slug_candidates(name, owner, repository, identity))
    assert candidates
    assert all(is_slug(slug) for slug in candidates)


def test_long_names_that_differ_at_their_ends_have_different_slugs() -> None:
    assert base_slug("a" * 200 + "b") != base_slug("a" * 200 + "c")


@pytest.mark.parametrize("word", ["search", "installs", "check-updates", "alias"])
def test_words_of_the_api_are_no_slugs(word: str) -> None:
    assert not is_slug(word)
    assert next(slug_candidates(word, "acme", "skills", "x")) == f"acme-{word}"


def misname(old: str, new: str) -> None:
    """Give a skill a slug that the rule does not have, as an older release or another tool may have written it."""
    row = SkillEntry.objects.get(key=f"skill:{old}")
    record = {**json.loads(row.value), "slug": new}
    rows: Any = SkillEntry.objects.filter(pk=row.pk)
    rows.write_row(key=f"skill:{new}", value=json.dumps(record), **SkillEntry.project(record))


@pytest.mark.django_db
def test_skills_are_migrated_skipped_and_collisions_told_apart(env: WorkerEnv) -> None:
    publish_example(env, name="right")
    publish_example(env, name="wrong one")
    misname("wrong-one", "Wrong_One")
    publish_example(env, name="right", repo_url="https://github.com/mallory/skills")
    misname("mallory-right", "mallory/skills/right")

    report = migrate_skill_slugs(env)

    assert [(moved.old, moved.new) for moved in report.migrated] == [("Wrong_One", "wrong-one")]
    assert [(moved.old, moved.wanted, moved.new) for moved in report.collisions] == [
        ("mallory/skills/right", "right", "mallory-right")
    ]
    assert (report.skipped, report.unreadable, report.conflicts) == (1, [], [])
    assert resolve_slug_sync(env, "Wrong_One") == "wrong-one"
    assert resolve_slug_sync(env, "mallory/skills/right") == "mallory-right"
    assert SkillVersion.objects.get(skill__slug="wrong-one").version == "0.0.1"
    assert HistoryEvent.objects.filter(action="renamed").count() == 2


@pytest.mark.django_db
def test_a_second_migration_changes_nothing(env: WorkerEnv) -> None:
    publish_example(env, name="wrong one")
    misname("wrong-one", "Wrong_One")
    migrate_skill_slugs(env)
    before = list(SkillEntry.objects.order_by("pk").values_list("key", "value", "version"))

    again = migrate_skill_slugs(env)

    assert (again.migrated, again.collisions, again.skipped) == ([], [], 1)
    assert list(SkillEntry.objects.order_by("pk").values_list("key", "value", "version")) == before


@pytest.mark.django_db
def test_a_dry_run_reports_the_same_and_writes_nothing(env: WorkerEnv) -> None:
    for number, owner in enumerate(("acme", "mallory")):
        slug = publish_example(env, name="two words", repo_url=f"https://github.com/{owner}/skills").slug
        misname(slug, f"Two_{number}")
    before = list(SkillEntry.objects.order_by("pk").values_list("key", "value", "version"))

    planned = migrate_skill_slugs(env, dry_run=True)

    assert list(SkillEntry.objects.order_by("pk").values_list("key", "value", "version")) == before
    assert planned == migrate_skill_slugs(env)
    assert [moved.new for moved in (*planned.migrated, *planned.collisions)] == ["two-words", "mallory-two-words"]


@pytest.mark.django_db
def test_a_skill_that_moves_to_a_later_page_is_migrated_and_not_counted_again(env: WorkerEnv) -> None:
    write_entries(env, 1001)
    last = SkillEntry.objects.filter(key="skill:skill-01000")
    skill_namespace(env).put_sync("skill:skill-01000", {**json.loads(last.get().value), "repoUrl": "https://a.b/c/d"})
    last.update(key="skill:Zebra")
    report = migrate_skill_slugs(env)
    assert [(one.old, one.new) for one in report.migrated] == [("Zebra", "skill-01000")]
    assert (report.skipped, report.collisions, report.conflicts, report.unreadable) == (1000, [], [], [])


@pytest.mark.django_db
def test_a_malformed_entry_is_reported_and_left(env: WorkerEnv) -> None:
    skill_namespace(env).put_sync("skill:Broken", {"no": "skill"})

    report = migrate_skill_slugs(env)

    assert report.unreadable == ["skill:Broken"]
    assert skill_namespace(env).get_sync("skill:Broken").value == {"no": "skill"}


@pytest.mark.django_db
def test_the_command_reports_every_entry_of_more_than_one_page(env: WorkerEnv) -> None:
    write_entries(env, 1001)
    out = io.StringIO()
    call_command("migrate_skill_slugs", "--dry-run", "--json", stdout=out)

    report = json.loads(out.getvalue())
    assert (report["skipped"], report["migrated"], report["dry_run"]) == (1001, [], True)


@pytest.mark.django_db
def test_the_command_says_what_it_did_in_one_line(env: WorkerEnv) -> None:
    publish_example(env, name="wrong one")
    misname("wrong-one", "Wrong_One")
    out = io.StringIO()
    call_command("migrate_skill_slugs", stdout=out)

    assert out.getvalue().splitlines() == [
        "default: Wrong_One -> wrong-one",
        "default: migrated 1, skipped 0, collisions 0, unreadable 0, conflicts 0",
    ]


@pytest.mark.django_db
def test_an_alias_leads_to_the_skill_through_up_to_five_names(env: WorkerEnv) -> None:
    publish_example(env, name="name-0")
    for number in range(5):
        rename_skill(env, f"name-{number}", f"name-{number + 1}", actor="test", reason="again")

    assert resolve_slug_sync(env, "name-0") == "name-5"
    assert resolve_slug_sync(env, "name-4") == "name-5"

    rename_skill(env, "name-5", "name-6", actor="test", reason="once too often")
    assert resolve_slug_sync(env, "name-0") is None
    assert resolve_slug_sync(env, "name-1") == "name-6"


@pytest.mark.django_db
@pytest.mark.parametrize("target", ["b", "nowhere", "", 5, None, ["a"], "skill:alias:a", "a:b"])
def test_loops_and_aliases_that_lead_nowhere_are_not_found(env: WorkerEnv, target: object) -> None:
    skill_namespace(env).put_sync("skill:alias:a", target)
    skill_namespace(env).put_sync("skill:alias:b", "a")

    assert resolve_slug_sync(env, "a") is None


@pytest.mark.django_db
def test_a_rename_keeps_versions_search_and_history_with_the_skill(env: WorkerEnv) -> None:
    publish_example(env)
    record = rename_skill(env, "hello-skill", "greeter", actor="ada", reason="clearer")

    assert record.slug == "greeter"
    assert [hit.skill.slug for hit in search_sync(env, "greeter")] == ["greeter"]
    assert SkillVersion.objects.get().skill.slug == "greeter"
    event = HistoryEvent.objects.get(action="renamed")
    assert (event.subject, event.actor, event.reason) == ("skill:greeter", "ada", "from hello-skill: clearer")


@pytest.mark.django_db
def test_a_skill_may_take_back_its_former_name(env: WorkerEnv) -> None:
    publish_example(env)
    rename_skill(env, "hello-skill", "greeter", actor="test", reason="clearer")
    rename_skill(env, "greeter", "hello-skill", actor="test", reason="it was better")

    assert resolve_slug_sync(env, "hello-skill") == resolve_slug_sync(env, "greeter") == "hello-skill"


@pytest.mark.django_db
@pytest.mark.parametrize("wanted", ["taken", "was-taken", "search", "Not A Slug", "", "-", "a--b"])
def test_a_name_that_is_held_or_no_slug_is_refused(env: WorkerEnv, wanted: str) -> None:
    publish_example(env)
    publish_example(env, name="was-taken")
    rename_skill(env, "was-taken", "taken", actor="test", reason="clearer")

    with pytest.raises(SlugTaken):
        rename_skill(env, "hello-skill", wanted, actor="test", reason="mine")
    assert SkillEntry.objects.filter(key="skill:hello-skill").exists()
