"""The rows by which skills are filtered are compared with what the skills say, and mended with their counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction

from marketplace.catalog import SkillFilters, list_skills, quarantine_skill
from marketplace.models import HistoryEvent, SkillEntry
from marketplace.models.derived import SkillFacet
from marketplace.search.engines import engine_of
from marketplace.skills.count_check import recount, wrong_counts
from marketplace.skills.facet_check import facets_not_counted, mend_facets, wrong_facets
from marketplace.skills.store import locked_skill, move_skill
from submissions.recovery.problems import Kind, Problem
from submissions.recovery.verify_store import verify_store
from tests.marketplace.factories import publish_example, write_entries
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
REST: Final[dict[str, Any]] = {"compatibility": "Made for Codex", "capabilities": ("shell",)}
SAID: Final = {("tag", "pdf"), ("tag", "office"), ("capability", "shell"), ("agent", "codex")}
FACETS: Final = ("tag", "capability", "agent")


def problems(env: WorkerEnv, *, repair: bool = False) -> list[Problem]:
    return async_to_sync(verify_store)(env, repair=repair).problems


def published(env: WorkerEnv, name: str = "pdf-tools", tags: str = "pdf office", **fields: Any) -> SkillEntry:
    slug = publish_example(env, name=name, metadata={"tags": tags}, **REST, **fields).slug
    row: SkillEntry = SkillEntry.objects.get(namespace=env.name, slug=slug)
    return row


def renamed(env: WorkerEnv) -> None:
    with transaction.atomic():
        move_skill(env, locked_skill(env, "pdf-tools"), "papers", actor="test", reason="a better name")


def withheld(env: WorkerEnv) -> None:
    quarantine_skill(env, "pdf-tools", actor="test", reason="a report")


def facets(row: SkillEntry) -> set[tuple[str, str]]:
    """Return the rows of a skill, all of its own environment."""
    rows = SkillFacet.objects.filter(skill=row)
    assert set(rows.values_list("namespace", flat=True)) <= {row.namespace}
    return set(rows.values_list("kind", "value"))


def lost(row: SkillEntry, kind: str = "tag", value: str = "pdf") -> None:
    assert SkillFacet.objects.filter(skill=row, kind=kind, value=value).delete()[0] == 1


def added(row: SkillEntry, kind: str = "tag", value: str = "music", namespace: str = "") -> None:
    SkillFacet.objects.create(namespace=namespace or row.namespace, kind=kind, value=value, skill=row)


def elsewhere(row: SkillEntry) -> None:
    added(row, namespace="another")


def exchanged(row: SkillEntry) -> None:
    SkillFacet.objects.filter(skill=row, kind="capability").update(value="other")
    lost(row, "agent", "codex")


@pytest.mark.parametrize("recounted", [False, True])
@pytest.mark.parametrize("fault", [lost, added, elsewhere, exchanged])
def test_a_row_that_is_lost_or_too_many_is_found_and_mended_with_filters_and_counts(
    env: WorkerEnv, fault: Callable[[SkillEntry], None], recounted: bool
) -> None:
    row, other = published(env), published(env, "other")
    events = HistoryEvent.objects.count()
    assert problems(env) == []
    fault(row)
    if recounted:
        # As every hour: the counts are then those of the wrong rows.
        recount(env)
        assert wrong_counts(env) == []
    (found,) = [one for one in problems(env) if one.kind is Kind.FACETS]
    assert (found.subject, found.repaired) == ("facets of skills", False)
    assert found.detail == "1 skills are filtered by something else than they say, such as skill:pdf-tools"

    mended = problems(env, repair=True)

    # The documents of PostgreSQL have the values of filters too. No count had to be mended by itself.
    assert {one.kind for one in mended} - {Kind.SEARCH} == {Kind.FACETS}
    assert all(one.repaired for one in mended)
    assert facets(row) == facets(other) == SAID
    assert problems(env, repair=True) == []
    page = list_skills(env, SkillFilters(tag="pdf"), count=True, facets=FACETS)
    assert page.total == (2, False)
    assert [(one.value, one.number) for one in page.facets["capability"]] == [("shell", 2)]
    after = SkillEntry.objects.get(pk=row.pk)
    assert (after.version, after.changed_at, HistoryEvent.objects.count()) == (row.version, row.changed_at, events)


def test_one_skill_is_mended_in_one_transaction_with_its_filters_and_counts(env: WorkerEnv) -> None:
    row = published(env)
    lost(row)
    for counts_know in (False, True):
        not_counted = facets_not_counted(env)
        assert not_counted == (frozenset() if counts_know else {("tag", "pdf")})
        with transaction.atomic():
            mend_facets(env, row.pk, not_counted)
        assert facets(row) == SAID
        assert wrong_counts(env) == []
        assert engine_of(env.database).fault() == ""
        lost(row)
        recount(env)


def test_a_former_name_has_no_facets_and_a_withheld_skill_keeps_its_own(env: WorkerEnv) -> None:
    row = published(env)
    renamed(env)
    quarantine_skill(env, "papers", actor="test", reason="a report")
    alias = SkillEntry.objects.get(key="skill:alias:pdf-tools")
    assert problems(env) == []
    added(alias)
    lost(row)
    assert wrong_facets(env) == [(row.pk, "skill:papers"), (alias.pk, "skill:alias:pdf-tools")]
    assert all(one.repaired for one in problems(env, repair=True))
    assert (facets(row), facets(alias)) == (SAID, set())
    assert problems(env) == []


def test_rows_of_another_environment_are_left_alone(env: WorkerEnv) -> None:
    other = WorkerEnv(name="another", database=env.database)
    own, theirs = published(env), published(other)
    lost(theirs)
    assert wrong_facets(env) == []
    # What is looked up in the index of PostgreSQL is that of all environments.
    assert Kind.FACETS not in {one.kind for one in problems(env, repair=True)}
    assert (facets(own), facets(theirs)) == (SAID, SAID - {("tag", "pdf")})
    assert [key for _number, key in wrong_facets(other)] == ["skill:pdf-tools"]


def again(env: WorkerEnv) -> None:
    published(env, tags="music", body="Again.")


@pytest.mark.parametrize("change", [again, renamed, withheld])
def test_what_is_published_renamed_or_withheld_between_finding_and_mending_is_left_as_it_is(
    env: WorkerEnv, change: Callable[[WorkerEnv], None]
) -> None:
    row = published(env)
    lost(row)
    ((number, _key),) = wrong_facets(env)
    not_counted = facets_not_counted(env)
    change(env)
    keys = set(SkillFacet.objects.values_list("pk", flat=True))
    assert wrong_facets(env) == []
    with transaction.atomic():
        mend_facets(env, number, not_counted)
    assert set(SkillFacet.objects.values_list("pk", flat=True)) == keys
    assert wrong_counts(env) == []
    assert problems(env) == []


def test_every_part_of_the_registry_is_read_and_a_value_that_cannot_be_read_is_left(env: WorkerEnv) -> None:
    row = published(env)
    write_entries(env, 1_200)
    assert wrong_facets(env) == []
    rows = list(SkillEntry.objects.filter(slug__startswith="skill-").order_by("pk"))
    wrong = rows[::300]
    for one in [row, *wrong]:
        added(one)
    SkillEntry.objects.using(env.database).filter(pk=row.pk).write_row(value="{cut")
    assert [number for number, _key in wrong_facets(env)] == [one.pk for one in wrong]
    with transaction.atomic():
        mend_facets(env, row.pk, ())
    assert facets(row) == {*SAID, ("tag", "music")}


@contextmanager
def refused(value: str) -> Iterator[None]:
    """Let the database refuse each row with a value."""
    table, when = SkillFacet._meta.db_table, f"WHEN (NEW.value = '{value}')"
    if connection.vendor == "sqlite":
        refuse = "BEGIN SELECT RAISE(ABORT, 'refused for a test'); END"
        made = [f"CREATE TRIGGER refuse BEFORE INSERT ON {table} {when} {refuse}"]
        dropped = ["DROP TRIGGER refuse"]
    else:
        refuse = "$$ BEGIN RAISE EXCEPTION 'refused for a test'; END $$"
        made = [
            f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS {refuse}",
            f"CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW {when} EXECUTE FUNCTION refuse()",
        ]
        dropped = [f"DROP TRIGGER refuse ON {table}", "DROP FUNCTION refuse()"]
    with connection.cursor() as cursor:
        for statement in made:
            cursor.execute(statement)
        try:
            yield
        finally:
            for statement in dropped:
                cursor.execute(statement)


def test_skills_are_mended_one_by_one_and_one_that_cannot_be_keeps_none_of_the_others_back(env: WorkerEnv) -> None:
    rows = {name: published(env, name, tags=name) for name in ("first", "second", "third")}
    for name, row in rows.items():
        lost(row, "tag", name)
    with refused("second"):
        (found,) = [one for one in problems(env, repair=True) if one.kind is Kind.FACETS]
    assert not found.repaired
    assert "not mended: 1 of 3, such as: " in found.detail
    assert "refused for a test" in found.detail
    assert [name for name, row in rows.items() if ("tag", name) in facets(row)] == ["first", "third"]
    assert all(one.repaired for one in problems(env, repair=True))
    assert problems(env) == []
