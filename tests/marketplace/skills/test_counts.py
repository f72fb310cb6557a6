"""The counts of lists: what is kept is what a full count gives, whatever was done, and nobody waits for them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from itertools import chain, combinations
from pathlib import Path
from typing import Any, Final

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, connections, transaction

from marketplace import catalog
from marketplace.catalog import SkillFilters, figures, list_skills, publish_skill
from marketplace.errors import MarketplaceError
from marketplace.flags import FlagKind, clear, flag
from marketplace.models import SkillEntry, SkillVersion
from marketplace.models.derived import DownloadDay, SkillCount, SkillCountChange
from marketplace.records import Visibility
from marketplace.skills import filtered
from marketplace.skills.agents import agents_of
from marketplace.skills.count_check import mend_counts, recount, wrong_counts
from marketplace.skills.count_reads import Activity, activity
from marketplace.skills.counts import COUNTED_FACETS, COUNTED_TOGETHER, DOWNLOADS, counted, fold
from marketplace.skills.downloads import count_download_sync
from tests.marketplace.factories import make_publication, publish_example, write_entries
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now

pytestmark = pytest.mark.django_db

VERDICTS: Final = ("clear", "notes", "held", "")
CAPABILITIES: Final = ("shell", "network", "files", "odd: &verdict:clear")
TAGS: Final = ("pdf", "office", "tag:odd&x", "zoë")
OWNERS: Final = ("acme", "mallory", "Zoë")


def listed() -> list[dict[str, set[str]]]:
    """Return the values of each facet of every listed skill, from the values of the entries alone."""
    records = [row.record for row in SkillEntry.objects.filter(key__startswith="skill:") if not row.is_alias]
    return [
        {
            "verdict": {one.verdict} - {""},
            "publisher": {one.publisher_handle},
            "capability": set(one.capabilities),
            "license": {one.license[:100]} - {""},
            "tag": set(one.tags),
            "agent": set(agents_of(one)),
        }
        for one in records
        if one.visibility == Visibility.VISIBLE and one.latest_version
    ]


def kept_versions() -> int:
    rows = SkillVersion.objects.filter(quarantined_at=None).select_related("skill")
    return sum(row.skill.record.visibility == Visibility.VISIBLE for row in rows)


def every_list(skills: list[dict[str, set[str]]], kinds: Collection[str], most: int) -> list[dict[str, str]]:
    """Return the filters of every list that at most so many of the facets filter and that holds one of the skills."""
    seen: set[tuple[tuple[str, str], ...]] = set()
    for skill in skills:
        values = [(kind, value) for kind in sorted(kinds) for value in sorted(skill[kind])]
        for chosen in chain.from_iterable(combinations(values, size) for size in range(most + 1)):
            if len(dict(chosen)) == len(chosen):
                seen.add(chosen)
    return list(map(dict, sorted(seen | {()})))


def passes(skill: dict[str, set[str]], filters: dict[str, str]) -> bool:
    return all(value in skill[kind] for kind, value in filters.items())


def assert_true_counts(env: WorkerEnv) -> None:
    skills = listed()
    told = figures(env)
    publishers = {value for skill in skills for value in skill["publisher"]}
    assert (told.skills, told.versions, told.publishers) == (len(skills), kept_versions(), len(publishers))
    lists = every_list(skills, COUNTED_TOGETHER, 3) + every_list(skills, COUNTED_FACETS, 1)
    pairs = every_list(skills, COUNTED_FACETS, 2)
    # All of them take too long; which ones depends on what is there.
    lists += random.Random(len(pairs)).sample(pairs, min(len(pairs), 20))
    for filters in lists:
        page = list_skills(env, SkillFilters(**filters), count=True, facets=COUNTED_FACETS)
        assert page.total == (sum(passes(skill, filters) for skill in skills), False), filters
        assert len(page.skills) == min(25, page.total[0])
        for kind in COUNTED_FACETS:
            others = {other: value for other, value in filters.items() if other != kind}
            counted = Counter(value for skill in skills if passes(skill, others) for value in skill[kind])
            wanted = sorted(counted.items(), key=lambda one: (-one[1], one[0]))[:20]
            assert [(one.value, one.number) for one in page.facets[kind]] == wanted, (filters, kind)
    assert wrong_counts(env) == []


def operate(env: WorkerEnv, chance: random.Random, number: int) -> None:
    """Do one thing that somebody may do to a registry; what is refused changes nothing."""
    rows = [row for row in SkillEntry.objects.order_by("pk") if not row.is_alias]
    if not rows or chance.random() < 0.3:
        owner = chance.choice(OWNERS)
        publish_example(
            env,
            name=f"skill-{number}" if chance.random() < 0.6 or not rows else chance.choice(rows).record.name,
            repo_url=f"https://github.com/{owner}/skills",
            body=f"Do {number}.",
            verdict=chance.choice(VERDICTS),
            capabilities=tuple(chance.sample(CAPABILITIES, chance.randint(0, 3))),
            license=chance.choice(("MIT", "", "See LICENSE. " * 10)),
            metadata={"tags": " ".join(chance.sample(TAGS, chance.randint(0, 3)))},
            compatibility=chance.choice(("", "Claude Code", "Made for Codex and Claude Code")),
        )
        return
    row = chance.choice(rows)
    version = chance.choice(list(SkillVersion.objects.filter(skill=row).order_by("ordinal"))).version
    said: dict[str, Any] = {"actor": "test", "reason": "because"}
    kind = chance.choice(list(FlagKind))
    operations: list[Callable[[], Any]] = [
        lambda: catalog.yank_version(env, row.slug, version, **said),
        lambda: catalog.unyank(env, row.slug, version, **said),
        lambda: catalog.quarantine_version(env, row.slug, version, **said),
        lambda: catalog.restore_version(env, row.slug, version, **said),
        lambda: catalog.quarantine_skill(env, row.slug, **said),
        lambda: catalog.delete_skill(env, row.slug, **said),
        lambda: catalog.restore(env, row.slug, **said),
        lambda: catalog.rename_skill(env, row.slug, f"renamed-{chance.randint(0, 5)}", **said),
        lambda: flag(env, row.slug, kind, "It changed.", version=version),
        lambda: clear(env, row.slug, kind, version=version),
        lambda: fold(env),
    ]
    with suppress(MarketplaceError):
        chance.choice(operations)()


@pytest.mark.parametrize("seed", range(4))
def test_counts_are_those_of_a_full_count_whatever_was_done(env: WorkerEnv, seed: int) -> None:
    strict = replace(env, policy=replace(env.policy, quarantine_flags=(FlagKind.KNOWN_BAD, FlagKind.VERDICT)))
    chance = random.Random(seed)
    for number in range(30):
        operate(strict, chance, number)
        if number % 6 == 0:
            assert_true_counts(env)
    assert_true_counts(env)
    fold(env)
    assert not SkillCountChange.objects.exists()
    assert_true_counts(env)


def test_what_is_undone_with_its_transaction_is_not_counted(env: WorkerEnv) -> None:
    publish_example(env, name="stays")
    with transaction.atomic():
        publish_example(env, name="goes", repo_url="https://github.com/other/skills")
        assert figures(env).publishers == 2
        transaction.set_rollback(True)
    assert figures(env).skills == figures(env).publishers == 1
    assert_true_counts(env)


def test_counts_of_one_environment_are_not_those_of_another(env: WorkerEnv) -> None:
    publish_example(env)
    other = replace(env, name="other")
    assert figures(other).skills == 0
    fold(other)
    assert figures(other).skills == 0
    assert wrong_counts(other) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite runs one writing transaction at a time")
def test_two_publications_at_the_same_time_do_not_wait_for_each_other_nor_for_a_fold(
    env: WorkerEnv, tmp_path: Path
) -> None:
    publish_example(env, name="before")
    fold(env)
    first, second = (make_publication(tmp_path / name, name=name, body=name) for name in ("one", "two"))

    def publish_impatiently() -> None:
        try:
            with connections[env.database].cursor() as cursor:
                cursor.execute("SET lock_timeout = '5s'")
            publish_skill(env, second)
            # Somebody folds: that is left to them.
            assert fold(env) == 0
        finally:
            connections.close_all()

    with transaction.atomic(), ThreadPoolExecutor(1) as pool:
        publish_skill(env, first)
        assert fold(env) > 0
        # Ends only if it waits for nothing that this transaction has changed.
        pool.submit(publish_impatiently).result()
        assert figures(env).skills == 3
    assert fold(env) > 0
    assert_true_counts(env)


@pytest.mark.django_db(transaction=True)
def test_a_process_that_publishes_much_adds_the_changes_up_itself(env: WorkerEnv) -> None:
    publish_example(env)
    row = SkillEntry.objects.get()
    rows_of_one = len(counted(row.record, 1))
    for number in range(40):
        said: dict[str, Any] = {"actor": "test", "reason": "because"}
        catalog.quarantine_skill(env, row.slug, **said)
        assert figures(env).skills == 0
        catalog.restore(env, row.slug, **said)
        assert figures(env).skills == 1, number
    # Eighty changes: at least one of them was the 64th of this process.
    assert SkillCountChange.objects.count() < 81 * rows_of_one


@pytest.mark.django_db(transaction=True)
def test_what_an_earlier_release_wrote_is_counted_by_the_hourly_command(
    env: WorkerEnv, capsys: pytest.CaptureFixture[str]
) -> None:
    write_entries(env, 3)
    SkillCount.objects.all().delete()
    SkillCountChange.objects.all().delete()
    call_command("recount_downloads")
    assert "counts of lists corrected: 1" in capsys.readouterr().out
    assert figures(env).skills == 3
    call_command("recount_downloads")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("kind", ["total", "publishers", "versions", *COUNTED_FACETS])
def test_a_count_that_is_wrong_is_named_and_mended(env: WorkerEnv, kind: str) -> None:
    publish_example(env, metadata={"tags": "pdf"}, compatibility="Claude Code")
    fold(env)
    SkillCount.objects.filter(within="", kind=kind).update(count=7)
    assert [(found, off) for _within, found, _value, off in wrong_counts(env)][:1] == [(kind, -6)]
    mend_counts(env)
    assert_true_counts(env)


def test_the_migration_counts_what_is_there(env: WorkerEnv) -> None:
    chance = random.Random(1)
    for number in range(25):
        operate(env, chance, number)
    SkillCount.objects.all().delete()
    SkillCountChange.objects.all().delete()
    row = SkillEntry.objects.exclude(slug="").order_by("pk").first()
    assert row is not None
    downloaded(env, row, 0, 3)
    downloaded(env, row, 300, 2)
    migration: Any = import_module("marketplace.migrations.0012_counts_of_lists")
    migration.fill(apps, connection.schema_editor())
    for name in ("0016_past_scans_and_activity", "0018_publishers"):
        migration = import_module(f"marketplace.migrations.{name}")
        migration.fill_days(apps, connection.schema_editor())
    for name in ("0034_counts_of_tags", "0037_counts_of_pairs"):
        migration = import_module(f"marketplace.migrations.{name}")
        migration.fill(apps, connection.schema_editor())
    assert_true_counts(env)
    today = database_now(env.database).date()
    assert activity(env, today).downloads == {today: 3}
    assert activity(env, today).downloads_since == today - timedelta(days=300)


def downloaded(env: WorkerEnv, row: SkillEntry, days: int, count: int) -> None:
    """Write downloads as a release did that keeps no count for each day."""
    day = database_now(env.database).date() - timedelta(days=days)
    DownloadDay.objects.create(namespace=env.name, skill=row, version="0.0.1", day=day, count=count)


def test_activity_has_each_download_and_each_listed_skill_on_its_day_at_once(env: WorkerEnv) -> None:
    today = database_now(env.database).date()
    assert activity(env, today) == Activity({}, {}, None)
    for name in ("one", "two"):
        publish_example(env, name=name)
    publish_example(env, name="one", body="Again.")
    row = SkillEntry.objects.get(slug="one")
    for _time in range(3):
        count_download_sync(env, row.pk, "0.0.1")
    assert activity(env, today) == Activity({today: 2}, {today: 3}, today)
    fold(env)
    count_download_sync(env, row.pk, "0.0.2")
    catalog.quarantine_skill(env, "two", actor="test", reason="because")
    assert activity(env, today) == Activity({today: 1}, {today: 4}, today)
    assert wrong_counts(env) == []
    assert activity(env, today + timedelta(days=1)).downloads == {}


def test_downloads_of_a_day_that_an_earlier_release_left_out_are_found_and_mended(env: WorkerEnv) -> None:
    publish_example(env)
    row = SkillEntry.objects.get()
    for days in (1, 30, 300):
        downloaded(env, row, days, 5)
    early, late = (database_now(env.database).date() - timedelta(days=one) for one in (30, 1))
    # What is shown, and not what is older; each hour, the last days alone.
    assert sorted(wrong_counts(env)) == [("", DOWNLOADS, day.isoformat(), 5) for day in (early, late)]
    assert recount(env) == 1
    assert activity(env, early).downloads == {late: 5}
    mend_counts(env)
    assert activity(env, early).downloads == {early: 5, late: 5}
    assert_true_counts(env)


def test_a_list_that_is_too_long_to_count_says_that_there_are_at_least_so_many(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MOST_COUNTED", "MOST_FOUND"):
        monkeypatch.setattr(filtered, name, 3)
    for number in range(4):
        publish_example(env, name=f"pdf-{number}")
    page = list_skills(env, SkillFilters(query="pdf"), count=True, facets=("verdict", "capability"))
    assert page.total == (3, True)
    assert page.facets["verdict"] == [("clear", 3, True)]
    assert page.facets["capability"] == [("shell", 3, True)]
    assert list_skills(env, SkillFilters(query="pdf-1"), count=True).total == (1, False)


@pytest.mark.parametrize("sort", ["newest", "updated", "name", "downloads", "trending"])
@pytest.mark.parametrize("few", [0, 1000], ids=["walked in order", "sorted"])
def test_a_filtered_list_is_the_same_however_it_is_found(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch, few: int, sort: str
) -> None:
    monkeypatch.setattr(filtered, "_FEW", few)
    for number in range(9):
        verdict, capabilities = VERDICTS[number % 2], CAPABILITIES[: number % 3]
        publish_example(
            env, name=f"skill-{number}", verdict=verdict, capabilities=capabilities, license=f"L{number % 2}"
        )
    filters = SkillFilters(verdict="clear", capability="shell", license="L0", publisher="acme")
    seen, cursor = [], None
    for _page in range(4):
        page = list_skills(env, filters, sort=sort, limit=1, cursor=cursor)
        seen += [row.slug for row in page.skills]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(seen) == ["skill-2", "skill-4", "skill-8"]
    assert seen == sorted(seen, reverse=sort != "name")


@pytest.mark.parametrize("facet", ["publisher", "verdict", "capability", "license", "tag"])
def test_a_value_that_is_longer_than_any_column_lists_nothing(env: WorkerEnv, facet: str) -> None:
    publish_example(env)
    for length in (65, 201, 301, 5000):
        assert list_skills(env, SkillFilters(**{facet: "x" * length})).skills == ()
    assert len(list_skills(env, SkillFilters()).skills) == 1
