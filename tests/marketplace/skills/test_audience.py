"""Whom a skill is shown to: refused, kept by what is published later, and changed while others write."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection, connections

from marketplace.catalog import delete_skill, find_skill_sync, list_skills, quarantine_skill, restore
from marketplace.errors import MalformedRecord, SkillNotFound
from marketplace.models import LogPending, SkillEntry, SkillVersion
from marketplace.records import SkillRecord, Visibility, read_shown_as, shown_as
from marketplace.skills.audience import NoAudience, show_to
from marketplace.skills.count_check import wrong_counts
from marketplace.skills.downloads import count_download_sync
from marketplace.skills.moderation import ReasonMissing
from marketplace.skills.recently_withdrawn import recently_withdrawn
from tests.marketplace.factories import publish_example
from vskill.accounts.audiences import MEMBERS, PUBLIC, is_audience, seeing, seen_as
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db
WHO = {"actor": "operator", "reason": "ours"}
AUDIENCES = (PUBLIC, MEMBERS, "team:1", "team:123456789")


def test_a_word_says_visibility_and_audience_and_fits_its_column() -> None:
    longest = SkillEntry._meta.get_field("visibility").max_length
    words = {shown_as(visibility, audience) for visibility in Visibility for audience in AUDIENCES}
    assert len(words) == len(Visibility) * len(AUDIENCES)
    assert max(map(len, words)) <= int(str(longest))
    for visibility in Visibility:
        for audience in AUDIENCES:
            assert read_shown_as(shown_as(visibility, audience)) == (visibility, audience)
    for word in ("", "team:", "team:x", "q/", "q/visible", "x/members", "everybody", "team:-1", "team:1 "):
        with pytest.raises(ValueError, match="no visibility"):
            read_shown_as(word)
    assert not is_audience("members ")


def test_a_value_without_a_known_word_is_no_skill_and_is_shown_to_nobody() -> None:
    value = SkillRecord(slug="a", name="a", audience=MEMBERS).to_value()
    assert value["visibility"] == MEMBERS
    assert SkillRecord.from_value(value).audience == MEMBERS
    assert SkillEntry.project(value)["visibility"] == MEMBERS
    with pytest.raises(MalformedRecord, match="visibility"):
        SkillRecord.from_value({**value, "visibility": "crowd"})


def test_what_is_no_audience_or_has_no_reason_changes_nothing(env: WorkerEnv) -> None:
    publish_example(env)
    with pytest.raises(ReasonMissing):
        show_to(env, "hello-skill", MEMBERS, actor="operator", reason=" ")
    with pytest.raises(NoAudience):
        show_to(env, "hello-skill", "team:hr", **WHO)
    with pytest.raises(SkillNotFound):
        show_to(env, "nothing", MEMBERS, **WHO)
    assert find_skill_sync(env, "hello-skill") is not None
    # Twice is once.
    show_to(env, "hello-skill", MEMBERS, **WHO)
    version = SkillEntry.objects.get(slug="hello-skill").version
    show_to(env, "hello-skill", MEMBERS, **WHO)
    assert SkillEntry.objects.get(slug="hello-skill").version == version


def test_a_withdrawal_is_told_to_those_who_could_see_the_skill_and_to_nobody_else(env: WorkerEnv) -> None:
    publish_example(env, audience=MEMBERS)
    for withdraw in (quarantine_skill, delete_skill):
        withdraw(env, "hello-skill", **WHO)
        assert find_skill_sync(env, "hello-skill", hidden=True) is None
        assert recently_withdrawn(env, 5) == []
        with seen_as((MEMBERS,)):
            assert find_skill_sync(env, "hello-skill") is None
            assert find_skill_sync(env, "hello-skill", hidden=True) is not None
            assert [one.skill.slug for one in recently_withdrawn(env, 5)] == ["hello-skill"]
    restore(env, "hello-skill", **WHO)
    assert SkillEntry.objects.get(slug="hello-skill").audience == MEMBERS


def test_a_new_version_is_for_whom_the_skill_is(env: WorkerEnv) -> None:
    publish_example(env, audience="team:3")
    publish_example(env, body="Better.")
    assert SkillVersion.objects.count() == 2
    assert SkillEntry.objects.get(slug="hello-skill").audience == "team:3"
    assert list_skills(env).skills == ()
    assert not LogPending.objects.exists()
    assert wrong_counts(env) == []


def test_downloads_of_what_is_private_are_in_no_total(env: WorkerEnv) -> None:
    publish_example(env)
    row = SkillEntry.objects.get(slug="hello-skill")
    for audience in (PUBLIC, MEMBERS, PUBLIC):
        show_to(env, "hello-skill", audience, **WHO)
        count_download_sync(env, row.pk, "0.0.1")
        assert wrong_counts(env) == [], audience


def test_what_is_seen_ends_with_the_request() -> None:
    def breaks() -> None:
        with seen_as((MEMBERS,)):
            assert seeing() == (MEMBERS,)
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        breaks()
    assert seeing() == ()


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite runs one writing transaction at a time")
@pytest.mark.django_db(transaction=True)
def test_whoever_publishes_downloads_and_changes_the_audience_at_once_leaves_right_counts_and_no_leak(
    env: WorkerEnv,
) -> None:
    publish_example(env)
    row = SkillEntry.objects.get(slug="hello-skill")
    together = Barrier(4)

    def run(work: Any) -> None:
        try:
            together.wait()
            for number in range(6):
                work(number)
        finally:
            connections.close_all()

    works = (
        lambda number: show_to(env, "hello-skill", (MEMBERS, PUBLIC)[number % 2], **WHO),
        lambda number: show_to(env, "hello-skill", ("team:1", MEMBERS)[number % 2], **WHO),
        lambda number: publish_example(env, body=f"Number {number}."),
        lambda _number: count_download_sync(env, row.pk, "0.0.1"),
    )
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(run, work) for work in works]:
            done.result()
    assert wrong_counts(env) == []
    show_to(env, "hello-skill", PUBLIC, **WHO)
    assert wrong_counts(env) == []
    # Every publication is told once, whenever that was.
    told = Counter(LogPending.objects.filter(kind="published").values_list("version_number", flat=True))
    assert told == Counter(SkillVersion.objects.values_list("pk", flat=True))
