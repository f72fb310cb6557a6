"""PostgreSQL looks up the terms of a search before it asks the index, and finds what the documents have."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import product
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from marketplace.models import SearchDocument, SkillEntry
from marketplace.search.documents import FIELDS, position_of
from marketplace.search.engines import engine_of
from marketplace.skills.answers import search_sync
from submissions.recovery.problems import Kind
from submissions.recovery.verify_store import verify_store
from tests.marketplace.factories import publish_example, write_entries
from vskill.environments import WorkerEnv

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has an index of beginnings"),
]
WORDS = ("alpha", "alphabet", "alps", "beta", "better", "be", "b", "gamma", "game", "zeta", "読", "読書")
TERMS = ("a", "al", "alpha", "alphabet", "b", "be", "bet", "gam", "zeta", "nothing", "読")


def write_documents(env: WorkerEnv, texts: Iterable[str], downloads: int = 0) -> None:
    """Write skills whose documents have the words of each text in their names."""
    held = list(texts)
    write_entries(env, len(held))
    empty = dict.fromkeys(FIELDS, "")
    SearchDocument.objects.bulk_create(
        SearchDocument(
            id=position_of(row.pk, downloads or row.pk % 40), namespace=env.name, skill=row, **{**empty, "name": text}
        )
        for row, text in zip(SkillEntry.objects.order_by("pk"), held, strict=True)
    )


def words_kept() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT word FROM marketplace_searchword ORDER BY word")
        return [word for (word,) in cursor.fetchall()]


@pytest.mark.parametrize(("frequent", "words"), [(1, 0), (8, 0), (8, 2), (16, 64), (1000, 1)])
def test_what_is_found_by_rare_terms_first_is_what_all_terms_find(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch, frequent: int, words: int
) -> None:
    monkeypatch.setattr("marketplace.search.postgresql._FREQUENT", frequent)
    monkeypatch.setattr("marketplace.search.postgresql._MOST_WORDS", words)
    chance = random.Random(frequent)
    write_documents(env, (" ".join(chance.sample(WORDS, 3)) for _ in range(60)))
    with connection.cursor() as cursor:
        # All documents for a sample, so that some terms are frequent and others are not.
        cursor.execute(
            "INSERT INTO marketplace_searchsample "
            "SELECT unnest(tsvector_to_array(words)), skill_id FROM marketplace_searchdocument"
        )
    held = list(SearchDocument.objects.order_by("-id").values_list("skill_id", "name"))
    pairs: list[list[Sequence[str]]] = [[one] for one in product(TERMS, repeat=2)]
    searches: list[list[Sequence[str]]] = [[[one]] for one in TERMS]
    searches += chance.sample(pairs, 40)
    searches += [[chance.sample(TERMS, 2) for _ in range(3)] for _ in range(10)]
    chosen = {pk for pk, _name in held[::2]}
    for asked in searches:
        truth = [pk for pk, name in held if any(all(f" {term}" in f" {name}" for term in one) for one in asked)]
        whole = [pk for pk, name in held if any(set(one) <= set(name.split()) for one in asked)]
        engine, skills = engine_of(env.database), SkillEntry.objects.all()
        matched = engine.by_position(engine.matching(skills, asked))
        assert list(matched.values_list("pk", flat=True)) == truth, asked
        assert set(engine.met(skills, asked).values_list("pk", flat=True)) == set(truth)
        assert set(engine.some(asked, 100)) == set(truth)
        assert len(engine.some(asked, 3)) == min(3, len(truth))
        for in_names, most in product((True, False), (3, 100)):
            kind: dict[str, Any] = {"in_names": in_names, "among": None}
            assert engine.nearest(asked, most, **kind) == truth[:most], asked
            assert engine.nearest(asked, most, whole_words=True, **kind) == whole[:most], asked
            kind["among"] = skills.filter(pk__in=chosen).values("pk")
            assert engine.nearest(asked, most, **kind) == [pk for pk in truth if pk in chosen][:most], asked
        assert set(engine.some(asked, 100, among=skills.filter(pk__in=chosen).values("pk"))) == set(truth) & chosen


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


def test_words_that_are_lost_are_found_missing_and_mended(env: WorkerEnv) -> None:
    publish_example(env, name="unseen")
    assert problems(env) == []
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM marketplace_searchword WHERE word IN ('unseen', 'skill')")
    assert search_sync(env, "unseen") == []
    (found,) = problems(env)
    assert (found.kind, found.subject, found.repaired) == (Kind.SEARCH, "index of the search", False)
    assert "words" in found.detail
    (mended,) = problems(env, repair=True)
    assert mended.repaired
    assert problems(env) == []
    assert [hit.skill.slug for hit in search_sync(env, "unseen")] == ["unseen"]


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
