"""Words of names are found by what somebody typed with a slip, and kept as skills are published, changed and mended."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marketplace.models import NameSpelling, SkillEntry
from marketplace.search.spelling import add_words, near_words, spellings, unknown_words, words_of
from marketplace.skills.audience import show_to
from marketplace.skills.search import Hits
from marketplace.skills.search_check import mend_documents, wrong_documents
from marketplace.skills.visibility import listed_skills
from tests.marketplace.pages.page_factory import publish
from vskill.accounts.audiences import MEMBERS
from vskill.environments import WorkerEnv

LETTERS = "abcdefghij"
WORDS = st.text(LETTERS, min_size=4, max_size=12)
on_the_database = pytest.mark.django_db


def near(env: WorkerEnv, term: str) -> list[str]:
    return near_words(env.database, env.name, [term])[term]


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


def test_words_that_are_too_short_or_too_long_for_a_slip_are_left_out() -> None:
    assert words_of(["pdf to ab " + "x" * 33, "tools"]) == {"pdf", "tools"}


@on_the_database
def test_the_nearest_words_come_first_and_what_is_far_is_none(env: WorkerEnv) -> None:
    assert add_words(env.database, env.name, ["extract invoices", "extracts pdf"]) == 4
    assert near(env, "extrcat") == ["extract"]
    assert near(env, "extract")[0] == "extract"
    assert near(env, "xtract") == ["extract"]
    assert near(env, "extracs") == ["extracts", "extract"]
    assert near(env, "kubernetes") == near(env, "pd") == near(env, "") == []


@on_the_database
def test_a_word_is_kept_once_and_for_its_environment_alone(env: WorkerEnv) -> None:
    add_words(env.database, env.name, ["extract"])
    before = NameSpelling.objects.using(env.database).count()
    assert add_words(env.database, env.name, ["extract extract"]) == 0
    assert NameSpelling.objects.using(env.database).count() == before == len("extract") + 1
    assert unknown_words(env.database, "another", ["extract"]) == {"extract"}


@on_the_database
def test_the_words_of_a_name_are_kept_when_it_is_published_and_mended_where_they_are_missing(env: WorkerEnv) -> None:
    publish(env, "extract-invoices")
    assert near(env, "invioces") == ["invoices"]
    NameSpelling.objects.using(env.database).all().delete()
    [wrong] = wrong_documents(env)
    mend_documents(env, [wrong])
    assert wrong_documents(env) == []
    assert near(env, "invioces") == ["invoices"]


@on_the_database
def test_a_word_that_is_only_in_a_private_name_is_told_to_nobody_else(env: WorkerEnv) -> None:
    publish(env, "extract-notes", description="Read totals.")
    publish(env, "zeppelin")
    show_to(env, "zeppelin", MEMBERS, actor="operator", reason="private")
    asked = Hits(
        listed_skills(SkillEntry.objects.using(env.database)), "extract zepelin totals", namespace=env.name
    ).asked
    assert asked.terms == ("extract", "totals")
