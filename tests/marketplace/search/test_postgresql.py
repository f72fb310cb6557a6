"""PostgreSQL looks up the terms of a search before it asks the index, and finds what the documents have."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from importlib import import_module
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from marketplace.models import SearchDocument, SkillEntry
from marketplace.models.derived import SkillFacet
from marketplace.search.documents import position_of
from marketplace.search.engines import engine_of
from marketplace.skills.answers import search_sync
from marketplace.skills.search_check import renew_positions
from submissions.recovery.problems import Kind
from submissions.recovery.verify_store import verify_store
from tests.end_to_end.processes import until
from tests.marketplace.factories import publish_example
from tests.marketplace.search.documents import write_documents
from vskill.environments import WorkerEnv

migration = import_module("marketplace.migrations.0040_names_first")

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has an index of beginnings"),
]


def words_kept() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT word FROM marketplace_searchword ORDER BY word")
        return [word for (word,) in cursor.fetchall()]


def test_what_begins_no_word_is_not_searched_for(env: WorkerEnv) -> None:
    publish_example(env, name="extract-invoices")
    with CaptureQueriesContext(connection) as statements:
        assert search_sync(env, "extract kubernetes") == []
    asked = [one["sql"] for one in statements.captured_queries]
    assert any("marketplace_searchword" in one for one in asked)
    assert not any("tsquery" in one and "kubernetes" in one for one in asked)


def test_the_words_of_whatever_is_written_are_kept_once(env: WorkerEnv) -> None:
    write_documents(env, ["alpha beta", "beta gamma"])
    assert words_kept() == ["alpha", "beta", "gamma"]
    SearchDocument.objects.filter(name="alpha beta").update(body="delta alpha")
    assert words_kept() == ["alpha", "beta", "delta", "gamma"]
    # What no document has any more finds nothing, and is kept.
    SearchDocument.objects.all().delete()
    assert words_kept() == ["alpha", "beta", "delta", "gamma"]


def test_what_is_looked_into_for_frequent_terms_is_found_by_the_rare_ones(env: WorkerEnv) -> None:
    write_documents(env, ["common", *["common rare"] * 2])
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO marketplace_searchsample SELECT 'common', generate_series(-20, -1)")
    skills = SkillEntry.objects.all()

    def where(*alternatives: str) -> list[str]:
        found = engine_of(env.database).matching(skills, [one.split() for one in alternatives])
        assert found.count() == 2
        return [part for part in str(found.query).split(" AND ") if "tsquery" in part]

    assert ["com" in one for one in where("rar com")] == [False, True]
    assert ["com" in one for one in where("rar com", "rar rare")] == [False, True]
    # Each alternative has to have a rare term, and some a frequent one.
    assert len(where("rar rare")) == 1
    assert len(where("com common rar", "rar")) == 2


def test_one_document_of_many_is_in_the_sample(env: WorkerEnv) -> None:
    write_documents(env, ["alpha beta"] * 300)
    SearchDocument.objects.update(body="alpha gamma")
    with connection.cursor() as cursor:
        cursor.execute("SELECT word, skill_id FROM marketplace_searchsample ORDER BY skill_id, word")
        sampled = cursor.fetchall()
    chosen = sorted(pk for pk in SkillEntry.objects.values_list("pk", flat=True) if pk % 128 == 0)
    assert 2 <= len(chosen) <= 3
    assert sampled == [(word, pk) for pk in chosen for word in ("alpha", "beta", "gamma")]


def test_publications_do_not_wait_for_each_other_over_a_new_word(env: WorkerEnv) -> None:
    write_documents(env, ["one", "two"])

    def add(text: str) -> list[str]:
        with closing(connection), transaction.atomic(using=env.database):
            connection.cursor().execute("SET LOCAL lock_timeout = '2s'")
            SearchDocument.objects.filter(name="two").update(body=text)
            return words_kept()

    with transaction.atomic(using=env.database):
        SearchDocument.objects.filter(name="one").update(body="new words")
        with ThreadPoolExecutor(1) as other:
            assert other.submit(add, "words new").result() == ["new", "one", "two", "words"]
    assert set(words_kept()) == {"new", "one", "two", "words"}
    assert len(search_sync(env, "new words")) == 2


def problems(env: WorkerEnv, *, repair: bool = False) -> list[Any]:
    return async_to_sync(verify_store)(env, repair=repair).problems


def test_names_that_lack_a_term_are_not_searched_for(env: WorkerEnv) -> None:
    publish_example(env, name="invoices", body="Kubernetes.")
    for query, asks_names in (("kubernetes", False), ("invoices", True)):
        with CaptureQueriesContext(connection) as statements:
            assert [hit.skill.slug for hit in search_sync(env, query)] == ["invoices"]
        (asked,) = (one["sql"] for one in statements.captured_queries if "_found(" in one["sql"])
        assert (asked.count(query) > 1) is asks_names


@pytest.mark.parametrize("table", ["marketplace_searchword", "marketplace_searchnameword"])
def test_words_that_are_lost_are_found_missing_and_mended(env: WorkerEnv, table: str) -> None:
    publish_example(env, name="unseen")
    assert problems(env) == []
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table} WHERE word IN ('unseen', 'skill')")  # noqa: S608 - names of this test
    # The word of a name is a word of a text as well.
    assert bool(search_sync(env, "unseen")) is (table == "marketplace_searchnameword")
    (found,) = problems(env)
    assert (found.kind, found.subject, found.repaired) == (Kind.SEARCH, "index of the search", False)
    assert "words" in found.detail
    (mended,) = problems(env, repair=True)
    assert mended.repaired
    assert problems(env) == []
    assert [hit.skill.slug for hit in search_sync(env, "unseen")] == ["unseen"]


def test_filters_of_documents_that_are_not_those_of_their_skills_are_found_and_mended(env: WorkerEnv) -> None:
    publish_example(env, name="unseen", metadata={"tags": "pdf"})
    assert problems(env) == []
    SkillFacet.objects.filter(kind="tag").update(value="music")
    # Its counts are wrong as well.
    (found,) = [one for one in problems(env) if one.kind == Kind.SEARCH]
    assert found.detail.endswith("1 documents have other filters than their skills")
    assert all(one.repaired for one in problems(env, repair=True))
    assert engine_of(env.database).fault() == ""


def test_filters_that_an_earlier_release_wrote_are_mended_every_hour(env: WorkerEnv) -> None:
    publish_example(env, name="unseen", metadata={"tags": "pdf"})
    assert renew_positions(env) == 0
    # Documents were written before the values.
    SkillFacet.objects.filter(kind="tag").update(value="music")
    assert (renew_positions(env), engine_of(env.database).fault()) == (1, "")
    assert renew_positions(env) == 0


def test_an_index_of_popular_skills_that_lacks_one_is_found_and_built_anew(env: WorkerEnv) -> None:
    set_ready = "UPDATE pg_index SET indisready = %s WHERE indexrelid = 'marketplace_searchdocument_popular'::regclass"
    write_documents(env, [f"word{number} alpha" for number in range(400)], downloads=1)
    publish_example(env, name="popular")
    with connection.cursor() as cursor:
        # The database adds to no index that is not ready.
        cursor.execute(set_ready, [False])
        row = SkillEntry.objects.get(slug="popular")
        SkillEntry.objects.filter(pk=row.pk).update(downloads=100)
        SearchDocument.objects.filter(skill=row).update(id=position_of(row.pk, 100))
        cursor.execute(set_ready, [True])
        # So that the server knows that this index is the smaller one.
        cursor.execute("ANALYZE marketplace_searchdocument")
    engine = engine_of(env.database)
    assert engine.fault().endswith("marketplace_searchdocument_popular knows 0")
    with transaction.atomic(using=env.database):
        engine.rebuild()
    assert engine.fault() == ""


def test_what_is_published_while_the_words_of_names_are_dropped_and_made_again_is_found(env: WorkerEnv) -> None:
    with ThreadPoolExecutor(1) as publisher:

        def publish(name: str) -> None:
            with closing(connections[env.database]):
                publish_example(env, name=name, skill_path=name)

        for number, statements in enumerate((migration.BACKWARDS, migration.STATEMENTS)):
            with transaction.atomic(), connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                published = publisher.submit(publish, f"unseen{number}")
                until(partial(_waits_or_ended, published))
            published.result()
    assert problems(env) == []
    assert [hit.skill.slug for hit in search_sync(env, "unseen")] == ["unseen1", "unseen0"]


def _waits_or_ended(work: Future[None]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM pg_locks WHERE NOT granted")
        return work.done() or cursor.fetchone() != (0,)
