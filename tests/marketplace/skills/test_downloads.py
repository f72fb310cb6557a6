"""Counts of downloads: none is lost, and those of past days leave the recent ones."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib import import_module
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, connections, transaction

from marketplace.catalog import list_skills
from marketplace.models import SkillEntry
from marketplace.models.derived import CountedClient, DownloadDay
from marketplace.skills.count_reads import activity
from marketplace.skills.downloads import RECENT_DAYS, count_download_sync, recount_recent
from tests.marketplace.factories import publish_example, write_entries
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now

pytestmark = pytest.mark.django_db


def days_ago(env: WorkerEnv, days: int) -> Any:
    return database_now(env.database).date() - timedelta(days=days)


def downloaded(env: WorkerEnv, slug: str, days: int, count: int) -> None:
    """Write the row of ``count`` downloads ``days`` days ago, as that day left it."""
    skill = SkillEntry.objects.get(slug=slug)
    DownloadDay.objects.create(namespace=env.name, skill=skill, version="1.0.0", day=days_ago(env, days), count=count)


def recent() -> dict[str, int]:
    return dict(SkillEntry.objects.values_list("slug", "recent_downloads"))


def test_a_download_counts_at_once_for_the_day_the_total_and_the_recent_ones(env: WorkerEnv) -> None:
    publish_example(env, name="one")
    skill = SkillEntry.objects.get()
    for _time in range(3):
        count_download_sync(env, skill.pk, "0.0.1")

    skill.refresh_from_db()
    assert (skill.downloads, skill.recent_downloads) == (3, 3)
    assert recount_recent(env) == 0


def test_a_recount_keeps_the_last_days_and_drops_those_before(env: WorkerEnv) -> None:
    write_entries(env, 4)
    SkillEntry.objects.update(recent_downloads=5)
    downloaded(env, "skill-00000", RECENT_DAYS - 1, 5)
    downloaded(env, "skill-00001", RECENT_DAYS, 5)
    downloaded(env, "skill-00002", 0, 2)
    downloaded(env, "skill-00002", 1, 1)

    assert recount_recent(env) == 3
    assert recent() == {"skill-00000": 5, "skill-00001": 0, "skill-00002": 3, "skill-00003": 0}
    assert recount_recent(env) == 0


def test_a_recount_finds_what_an_earlier_release_counted_without_it(env: WorkerEnv) -> None:
    write_entries(env, 1)
    downloaded(env, "skill-00000", 2, 4)
    recount_recent(env)
    assert recent() == {"skill-00000": 4}


def test_a_recount_corrects_more_skills_than_one_transaction_takes(env: WorkerEnv) -> None:
    write_entries(env, 1100)
    SkillEntry.objects.update(recent_downloads=1)
    assert recount_recent(env) == 1100
    assert set(recent().values()) == {0}


def test_a_recount_leaves_other_environments_alone(env: WorkerEnv) -> None:
    write_entries(env, 1)
    SkillEntry.objects.update(namespace="elsewhere", recent_downloads=9)
    assert recount_recent(env) == 0
    assert recent() == {"skill-00000": 9}


@pytest.mark.parametrize(
    ("verbosity", "said"), [(0, ""), (1, "default: recent downloads corrected: 1 of its skills\n")]
)
@pytest.mark.django_db(transaction=True)
def test_the_command_corrects_and_cron_hears_nothing_of_it(env: WorkerEnv, verbosity: int, said: str) -> None:
    write_entries(env, 1)
    SkillEntry.objects.update(recent_downloads=9)
    out = StringIO()
    call_command("recount_downloads", verbosity=verbosity, stdout=out)

    assert recent() == {"skill-00000": 0}
    assert out.getvalue() == said


@pytest.mark.django_db(transaction=True)
def test_downloads_that_are_counted_during_a_recount_are_not_lost(env: WorkerEnv) -> None:
    write_entries(env, 3)
    numbers = list(SkillEntry.objects.values_list("pk", flat=True))
    ready = threading.Barrier(2)

    def count() -> None:
        ready.wait(30)
        for turn in range(60):
            count_download_sync(env, numbers[turn % 3], "1.0.0")
        connections.close_all()

    counting = threading.Thread(target=count)
    counting.start()
    ready.wait(30)
    while counting.is_alive():
        # Wrong on purpose, so that each recount writes.
        SkillEntry.objects.filter(pk=numbers[0]).update(recent_downloads=1000)
        recount_recent(env)
    counting.join()
    recount_recent(env)

    assert recent() == {f"skill-{number:05}": 20 for number in range(3)}
    assert sum(DownloadDay.objects.values_list("count", flat=True)) == 60


def test_trending_walks_from_the_most_downloaded_lately_to_those_never_downloaded(env: WorkerEnv) -> None:
    write_entries(env, 6)
    for slug, count in (("skill-00001", 2), ("skill-00004", 7), ("skill-00002", 2)):
        SkillEntry.objects.filter(slug=slug).update(recent_downloads=count)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = list_skills(env, sort="trending", limit=2, cursor=cursor)
        seen += [skill.slug[-1] for skill in page.skills]
        if (cursor := page.next_cursor) is None:
            break

    assert seen == ["4", "2", "1", "5", "3", "0"]


def test_the_migration_fills_the_recent_downloads_from_the_days(env: WorkerEnv) -> None:
    migration = import_module("marketplace.migrations.0007_recent_downloads")
    write_entries(env, 3)
    downloaded(env, "skill-00000", 1, 3)
    downloaded(env, "skill-00000", 3, 4)
    downloaded(env, "skill-00001", RECENT_DAYS + 2, 9)
    migration.fill(apps, connections[env.database].schema_editor())

    assert recent() == {"skill-00000": 7, "skill-00001": 0, "skill-00002": 0}


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite runs one writing transaction at a time")
def test_downloads_of_two_skills_at_the_same_time_do_not_wait_for_the_total_of_the_day(env: WorkerEnv) -> None:
    for name in ("one", "two"):
        publish_example(env, name=name)
    first, second = SkillEntry.objects.order_by("slug")
    today = days_ago(env, 0)

    def count_impatiently() -> None:
        try:
            with connections[env.database].cursor() as cursor:
                cursor.execute("SET lock_timeout = '5s'")
            count_download_sync(env, second.pk, "0.0.1")
        finally:
            connections.close_all()

    with transaction.atomic(), ThreadPoolExecutor(1) as pool:
        count_download_sync(env, first.pk, "0.0.1")
        pool.submit(count_impatiently).result()
    assert activity(env, today).downloads == {today: 2}


@pytest.mark.django_db(transaction=True)
def test_a_client_that_asks_many_times_at_once_counts_once(env: WorkerEnv) -> None:
    write_entries(env, 1)
    number = SkillEntry.objects.get().pk

    def ask(_turn: int) -> bool:
        try:
            return count_download_sync(env, number, "1.0.0", "192.0.2.1")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(ask, range(8))) == [False] * 7 + [True]
    assert recent() == {"skill-00000": 1}
    assert DownloadDay.objects.get().count == 1


@pytest.mark.django_db(transaction=True)
def test_who_downloaded_is_forgotten_the_day_after(env: WorkerEnv) -> None:
    today = days_ago(env, 0)
    for back in range(4):
        CountedClient.objects.create(digest=str(back), day=today - timedelta(days=back))
    call_command("recount_downloads", verbosity=0)
    assert sorted(CountedClient.objects.values_list("digest", flat=True)) == ["0", "1"]
