"""Concurrent publications: one wins, and the others see what it wrote. Real threads, each with its own connection."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from django.db import connection, connections

from marketplace.catalog import (
    PublishedVersion,
    SlugTaken,
    publish_skill,
    quarantine_skill,
    rename_skill,
    resolve_slug_sync,
)
from marketplace.models import HistoryEvent, SkillEntry, SkillVersion
from marketplace.models.derived import SearchDocument
from tests.marketplace.factories import make_publication, publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
T = TypeVar("T")


def at_once(calls: list[Callable[[], T]]) -> list[T]:
    """Start all calls together, each in its own thread with its own connection, and return their results."""
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], T]) -> T:
        try:
            start.wait(timeout=30)
            return call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(run, call) for call in calls]]


def publishing(env: WorkerEnv, root: Path, **fields: Any) -> Callable[[], PublishedVersion]:
    publication = make_publication(root, **fields)
    return lambda: publish_skill(env, publication)


def test_one_submission_published_by_six_workers_is_one_version(env: WorkerEnv, tmp_path: Path) -> None:
    results = at_once([publishing(env, tmp_path / str(n), submission_id="sub_1") for n in range(6)])

    assert sorted(result.created for result in results) == [False] * 5 + [True]
    assert {(result.slug, result.version) for result in results} == {("hello-skill", "0.0.1")}
    assert SkillEntry.objects.count() == SkillVersion.objects.count() == HistoryEvent.objects.count() == 1


def test_the_same_content_from_six_submissions_is_one_version(env: WorkerEnv, tmp_path: Path) -> None:
    results = at_once([publishing(env, tmp_path / str(n)) for n in range(6)])

    assert sorted(result.created for result in results) == [False] * 5 + [True]
    assert SkillVersion.objects.count() == 1


def test_six_contents_of_one_skill_are_six_versions(env: WorkerEnv, tmp_path: Path) -> None:
    results = at_once([publishing(env, tmp_path / str(n), body=f"Content {n}.") for n in range(6)])

    assert sorted(result.version for result in results) == [f"0.0.{n}" for n in range(1, 7)]
    assert list(SkillVersion.objects.order_by("ordinal").values_list("ordinal", flat=True)) == [1, 2, 3, 4, 5, 6]
    assert SkillEntry.objects.get().latest_version == "0.0.6"


def test_six_strangers_with_one_name_get_six_slugs(env: WorkerEnv, tmp_path: Path) -> None:
    results = at_once(
        [publishing(env, tmp_path / str(n), repo_url=f"https://github.com/owner{n}/skills") for n in range(6)]
    )

    slugs = {result.slug for result in results}
    assert len(slugs) == 6
    assert "hello-skill" in slugs
    for entry in SkillEntry.objects.all():
        assert entry.key == f"skill:{entry.slug}"
        assert SearchDocument.objects.filter(skill=entry).exists()


def test_a_rename_and_a_publication_of_the_old_name_never_share_it(env: WorkerEnv, tmp_path: Path) -> None:
    publish_example(env)
    stranger = publishing(env, tmp_path / "stranger", repo_url="https://github.com/mallory/skills")
    at_once(
        [
            lambda: rename_skill(env, "hello-skill", "greeter", actor="test", reason="clearer").slug,
            lambda: stranger().slug,
        ]
    )

    assert resolve_slug_sync(env, "hello-skill") == "greeter"
    assert SkillEntry.objects.get(publisher_handle="mallory").slug == "mallory-hello-skill"


@contextmanager
def before_first(statement: str, work: Callable[[], object]) -> Iterator[None]:
    """Do ``work`` on another connection before the first SQL that starts with ``statement`` is executed on this one."""
    upcoming = [work]

    def execute_after(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if upcoming and sql.startswith(statement):
            at_once([upcoming.pop()])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(execute_after):
        yield
    assert upcoming == []


writers_overlap = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="on SQLite nothing is written between the lookup and the write"
)


@pytest.mark.postgres
@writers_overlap
def test_a_slug_that_becomes_an_alias_during_a_publication_stays_with_its_skill(env: WorkerEnv, tmp_path: Path) -> None:
    owner = publishing(env, tmp_path / "owner")
    stranger = publishing(env, tmp_path / "stranger", repo_url="https://github.com/mallory/skills")

    def publish_and_rename() -> None:
        owner()
        rename_skill(env, "hello-skill", "greeter", actor="test", reason="clearer")

    with before_first('INSERT INTO "marketplace_skillentry"', publish_and_rename):
        published = stranger()

    assert published.slug == "mallory-hello-skill"
    assert resolve_slug_sync(env, "hello-skill") == "greeter"


@pytest.mark.postgres
@writers_overlap
def test_a_slug_that_becomes_an_alias_during_a_rename_stays_with_its_skill(env: WorkerEnv, tmp_path: Path) -> None:
    publish_example(env)
    other = publishing(env, tmp_path / "other", name="greeter", repo_url="https://github.com/mallory/skills")

    def publish_and_rename() -> None:
        other()
        rename_skill(env, "greeter", "welcomer", actor="test", reason="clearer")

    with (
        before_first('UPDATE "marketplace_skillentry"', publish_and_rename),
        pytest.raises(SlugTaken),
    ):
        rename_skill(env, "hello-skill", "greeter", actor="test", reason="mine")

    assert resolve_slug_sync(env, "greeter") == "welcomer"
    assert resolve_slug_sync(env, "hello-skill") == "hello-skill"


def test_a_quarantine_holds_against_a_publication_at_the_same_time(env: WorkerEnv, tmp_path: Path) -> None:
    publish_example(env)
    update = publishing(env, tmp_path / "update", body="More.")
    at_once([lambda: quarantine_skill(env, "hello-skill", actor="test", reason="bad").slug, lambda: update().slug])

    skill = SkillEntry.objects.get()
    assert (skill.visibility, skill.latest_version) == ("quarantined", "0.0.2")
