"""Words of skills are found in spite of a slip, and are kept as skills are published, changed and mended."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connections
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from marketplace.models import SkillEntry, WordSpelling
from marketplace.search.spelling import (
    MOST_OTHERS,
    WordUse,
    add_words,
    near_words,
    spellings,
    unknown_words,
    words_of,
)
from marketplace.skills.audience import show_to
from marketplace.skills.search import Hits
from marketplace.skills.search_check import mend_documents, wrong_documents
from marketplace.skills.visibility import listed_skills
from tests.marketplace.pages.page_factory import publish
from vskill.accounts.audiences import MEMBERS
from vskill.environments import WorkerEnv

migration = import_module("marketplace.migrations.0033_spellings_of_words")
LETTERS = "abcdefghij"
WORDS = st.text(LETTERS, min_size=4, max_size=12)
on_the_database = pytest.mark.django_db


def near(env: WorkerEnv, term: str) -> list[str]:
    return [use.word for use in near_words(env.database, env.name, [term])[term].words]


def named(text: str) -> set[WordUse]:
    return {WordUse(word, True) for word in text.split()}


def document(name: str = "", description: str = "") -> dict[str, str]:
    return {"name": name, "tags": "", "owner": "", "repository": "", "description": description, "body": "body"}


@given(
    word=WORDS,
    place=st.integers(0, 11),
    letter=st.sampled_from(LETTERS),
    kind=st.sampled_from(["wrong", "missing", "more", "swapped"]),
)
@settings(max_examples=300, deadline=None)
def test_a_word_and_one_slip_in_it_have_a_spelling_in_common(word: str, place: int, letter: str, kind: str) -> None:
    place %= len(word)
    typed = {
        "wrong": word[:place] + letter + word[place + 1 :],
        "missing": word[:place] + word[place + 1 :],
        "more": word[:place] + letter + word[place:],
        "swapped": word[:place] + word[place : place + 2][::-1] + word[place + 2 :],
    }[kind]
    assert set(spellings(word)) & set(spellings(typed))


def test_words_that_are_too_short_or_too_long_for_a_slip_and_numbers_are_left_out() -> None:
    fields = document("pdf to ab 2024 " + "x" * 33, "tools 12345 k8s")
    assert words_of(fields, is_public=True) == {("pdf", True), ("tools", False), ("k8s", False)}
    # Nobody may be told that a word is one of a name which they do not see.
    assert not any(use.in_names for use in words_of(fields, is_public=False))


def test_a_skill_adds_so_many_words_and_no_more() -> None:
    fields = document("name", " ".join(f"word{number}" for number in range(1000)))
    assert len(words_of(fields, is_public=True)) == MOST_OTHERS + 1


@on_the_database
def test_the_nearest_words_come_first_and_what_is_far_is_none(env: WorkerEnv) -> None:
    assert add_words(env.database, env.name, named("extract invoices extracts pdf acme")) == 5
    assert near(env, "extrcat") == ["extract", "extracts"]
    assert near(env, "extract")[0] == "extract"
    assert near(env, "xtract") == ["extract", "extracts"]
    assert near(env, "extracs") == ["extracts", "extract"]
    # The slip is in a word that stands there in another number.
    assert near(env, "invoce") == ["invoices"]
    # One letter is missing and another one too many, which is two slips.
    assert near(env, "name") == []
    assert near(env, "ivoicess") == ["invoices"]
    assert near(env, "kubernetes") == near(env, "pd") == near(env, "") == []


@on_the_database
def test_of_words_that_are_as_near_those_of_names_come_first(env: WorkerEnv) -> None:
    add_words(env.database, env.name, {WordUse("formal", False), WordUse("format", True), WordUse("forma", False)})
    assert near(env, "formar") == ["format", "forma", "formal"]
    # A word of a text that is nearer comes before a name.
    assert near(env, "formal") == ["formal", "format", "forma"]


@on_the_database
def test_a_word_is_kept_once_and_for_its_environment_alone(env: WorkerEnv) -> None:
    kept = WordSpelling.objects.using(env.database)
    add_words(env.database, env.name, {WordUse("extract", False)})
    assert add_words(env.database, env.name, {WordUse("extract", False)}) == 0
    assert kept.count() == len("extract") + 1
    assert unknown_words(env.database, "another", named("extract")) == named("extract")
    # It is another matter that it is a word of names, and then it is no other word besides.
    assert add_words(env.database, env.name, named("extract")) == 1
    assert add_words(env.database, env.name, {WordUse("extract", False), *named("extract summary")}) == 1
    assert unknown_words(env.database, env.name, {WordUse("summary", False)}) == set()


@on_the_database
def test_the_words_of_a_skill_are_kept_when_it_is_published_and_mended_where_they_are_missing(env: WorkerEnv) -> None:
    publish(
        env,
        "extract-invoices",
        description="Read the totals of spreadsheets.",
        metadata={"tags": "accessibility"},
        repo_url="https://github.com/northwind/bookkeeping",
        text="Whatever follows.",
    )
    slips = {
        "invioces": "invoices",
        "spreadshet": "spreadsheets",
        "accessibilty": "accessibility",
        "northwnd": "northwind",
        "bokkeeping": "bookkeeping",
    }
    assert {slip: near(env, slip)[0] for slip in slips} == slips
    assert near(env, "whatver") == []
    for lost in ("invoices", "spreadsheets"):
        WordSpelling.objects.using(env.database).filter(word=lost).delete()
        [wrong] = wrong_documents(env)
        mend_documents(env, [wrong])
        assert wrong_documents(env) == []
    assert {slip: near(env, slip)[0] for slip in slips} == slips


@on_the_database
def test_the_words_of_what_was_published_before_are_added_by_a_migration(env: WorkerEnv) -> None:
    publish(env, "extract-invoices", description="Read totals.")
    publish(env, "read-logs", description="Extract invoices and lines.")
    publish(env, "zeppelin", description="Fly.", audience=MEMBERS)
    kept = WordSpelling.objects.using(env.database).order_by("word", "spelling", "in_names")
    before = list(kept.values_list("word", "spelling", "in_names"))
    kept.delete()
    migration.add_words(apps, connections[env.database].schema_editor())
    after = list(kept.values_list("word", "spelling", "in_names"))
    # A word that came into a name after it had stood elsewhere had rows of both kinds.
    assert after == [row for row in before if row[2] or (*row[:2], True) not in before]
    assert len(after) == len(before) - len(spellings("read"))
    assert ("zeppelin", "zeppelin", False) in after
    assert wrong_documents(env) == []


@on_the_database
def test_a_skill_whose_words_are_known_costs_one_look_up_of_them(env: WorkerEnv) -> None:
    words = [f"{first}{second}word" for first in LETTERS for second in LETTERS]
    publish(env, "one", description=" ".join(words))
    with CaptureQueriesContext(connections[env.database]) as caught:
        publish(env, "two", description=" ".join(reversed(words)))
    about = [one["sql"] for one in caught if WordSpelling._meta.db_table in one["sql"]]
    # The name is new.
    assert [sql.split()[0] for sql in about] == ["SELECT", "INSERT"]


@on_the_database
@pytest.mark.parametrize("field", ["name", "description"])
def test_a_word_that_only_a_private_skill_has_is_told_to_nobody_else(env: WorkerEnv, field: str) -> None:
    publish(env, "extract-notes", description="Read totals.")
    publish(env, "zeppelin" if field == "name" else "other", description="Fly a zeppelin.")
    show_to(env, "zeppelin" if field == "name" else "other", MEMBERS, actor="operator", reason="private")
    WordSpelling.objects.using(env.database).all().delete()
    mend_documents(env, wrong_documents(env))
    assert near(env, "zepelin") == ["zeppelin"]
    # Neither by a slip nor by a search for the word itself.
    for typed in ("zepelin", "zeppelin", "kubernetes"):
        asked = Hits(
            listed_skills(SkillEntry.objects.using(env.database)), f"extract {typed} totals", namespace=env.name
        ).asked
        assert asked.terms == ("extract", "totals")
