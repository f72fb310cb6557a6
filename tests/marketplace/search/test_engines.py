"""Both engines find what the documents have, however they ask their index for it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import pytest
from django.db import connection

from marketplace.catalog import SkillFilters, list_skills
from marketplace.models import SearchDocument, SkillEntry
from marketplace.models.derived import SkillFacet
from marketplace.search.documents import renew_filters
from marketplace.search.engine import Among
from marketplace.search.engines import engine_of
from tests.marketplace.factories import publish_example
from tests.marketplace.search.documents import write_documents
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = ("alpha", "alphabet", "alps", "beta", "better", "be", "b", "gamma", "game", "zeta", "読", "読書")
TERMS = ("a", "al", "alph", "alpha", "alphabet", "b", "be", "bet", "gam", "zeta", "nothing", "読")


def given(env: WorkerEnv, keys: set[int], facet: str, value: str) -> Among:
    """Give the skills with these keys a value of a facet, and return what asks for it."""
    SkillFacet.objects.bulk_create(
        SkillFacet(namespace=env.name, kind=facet, value=value, skill_id=key) for key in sorted(keys)
    )
    for row in SkillEntry.objects.filter(pk__in=keys):
        renew_filters(row, env.database)
    return Among(facet, value, len(keys), SkillFacet.objects.filter(kind=facet, value=value).values("skill_id"))


def sample_every_document() -> None:
    """Take all documents for the sample of PostgreSQL, so that some terms are frequent and others are not."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO marketplace_searchsample "
                "SELECT unnest(tsvector_to_array(words)), skill_id FROM marketplace_searchdocument"
            )


def ask_by(monkeypatch: pytest.MonkeyPatch, frequent: int, words: int) -> None:
    """Have the indexes asked for so many words of a term at most, and what so many of the sample have be frequent."""
    monkeypatch.setattr("marketplace.search.postgresql_terms._FREQUENT", frequent)
    for engine_module in ("postgresql_terms", "sqlite"):
        monkeypatch.setattr(f"marketplace.search.{engine_module}._MOST_WORDS", words)


def has_all(text: str, asked: Sequence[Sequence[str]]) -> bool:
    """Return whether every term of one of the alternatives begins a word of a text."""
    return any(all(f" {term}" in f" {text}" for term in one) for one in asked)


@pytest.mark.parametrize(("frequent", "words"), [(1, 0), (8, 0), (8, 2), (16, 64), (1000, 1)])
def test_what_is_found_is_what_has_all_terms_however_the_index_is_asked(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch, frequent: int, words: int
) -> None:
    ask_by(monkeypatch, frequent, words)
    chance = random.Random(frequent)
    write_documents(env, (" ".join(chance.sample(WORDS, 3)) for _ in range(60)))
    sample_every_document()
    held = list(SearchDocument.objects.order_by("-id").values_list("skill_id", "name"))
    pairs: list[list[Sequence[str]]] = [[one] for one in product(TERMS, repeat=2)]
    searches: list[list[Sequence[str]]] = [[[one]] for one in TERMS]
    searches += chance.sample(pairs, 40)
    searches += [[chance.sample(TERMS, 2) for _ in range(3)] for _ in range(10)]
    chosen = {pk for pk, _name in held[::2]}
    among = given(env, chosen, "tag", "it's \\ | odd")
    for asked in searches:
        truth = [pk for pk, name in held if has_all(name, asked)]
        engine, skills = engine_of(env.database), SkillEntry.objects.all()
        matched = engine.by_position(engine.matching(skills, asked))
        assert list(matched.values_list("pk", flat=True)) == truth, asked
        if truth:
            assert set(engine.met(skills, asked).values_list("pk", flat=True)) == set(truth)
        assert set(engine.some(asked, 100)) == set(truth)
        assert len(engine.some(asked, 3)) == min(3, len(truth))
        for in_names, most in product((True, False), (3, 100)):
            kind: dict[str, Any] = {"in_names": in_names, "among": ()}
            assert engine.nearest(asked, most, **kind) == truth[:most], asked
            last = held[len(held) // 2][0]
            known = [pk for pk in truth if pk <= last]
            assert engine.nearest(asked, most, last=last, **kind) == known[:most], asked
            kind["among"] = [among]
            assert engine.nearest(asked, most, **kind) == [pk for pk in truth if pk in chosen][:most], asked
        assert set(engine.some(asked, 100, among=[among])) == set(truth) & chosen


@pytest.mark.parametrize(("frequent", "words"), [(1, 0), (8, 2), (1000, 64)])
def test_what_is_named_by_all_terms_comes_before_what_has_them_elsewhere(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch, frequent: int, words: int
) -> None:
    ask_by(monkeypatch, frequent, words)
    chance = random.Random(frequent)
    texts = [" ".join(chance.sample(WORDS, 3)) for _ in range(60)]
    write_documents(env, (text.split()[0] for text in texts), bodies=texts)
    sample_every_document()
    held = list(SearchDocument.objects.order_by("-id").values_list("skill_id", "name", "body"))
    every, seen = SkillEntry.objects.all(), {pk for pk, _name, _body in held[::3]}
    slugs, last = dict(every.values_list("pk", "slug")), held[len(held) // 2][0]
    engine = engine_of(env.database)
    values = [
        given(env, {pk for pk, _name, _body in held[::step]}, facet, "it's \\ odd")
        for step, facet in ((3, "agent"), (2, "tag"))
    ]
    holders = {one.facet: set(one.keys.values_list("skill_id", flat=True)) for one in values}
    searches: list[list[Sequence[str]]] = [[[one]] for one in TERMS]
    searches += [[chance.sample(TERMS, 2) for _ in range(number)] for number in (1, 2, 3) * 5]
    counts: set[tuple[bool, bool]] = set()
    for asked, most, highest, among, indexed in product(
        searches, (3, 100), (None, last), ([], values[1:], values), (0, 1000)
    ):
        monkeypatch.setattr(type(engine), "most_among", indexed)
        is_asked = {one.facet for one in among} - {one.facet for one in engine.unasked(among)}
        passing = set.intersection({pk for pk, _name, _body in held}, *(holders[facet] for facet in is_asked))
        possible = [one for one in held if (highest is None or one[0] <= highest) and one[0] in passing]
        named = [pk for pk, name, _body in possible if has_all(name, asked)]
        others = [pk for pk, _name, body in possible if has_all(body, asked) and pk not in named]
        keys = [*named, *others][:most]
        given_all: dict[str, Any] = {"among": among, "last": highest}
        read = partial(engine.read, asked, most, every.filter(pk__in=seen), ("pk", "slug"))
        found = read(names_first=True, **given_all)
        if len(keys) < most:
            assert set(found.keys) == set(keys), asked
            assert found.named in (0, len(named))
        else:
            assert (found.keys, found.named) == (keys, min(most, len(named))), asked
        assert found.rows == {pk: (pk, slugs[pk]) for pk in keys if pk in seen}
        in_order = [pk for pk, name, body in possible if has_all(name, asked) or has_all(body, asked)][:most]
        assert read(**given_all) == (in_order, 0, {pk: (pk, slugs[pk]) for pk in in_order if pk in seen})
        counts.add((bool(named), bool(others)))
    assert counts >= {(True, True), (False, True), (False, False)}
    # What is not asked for is left to whoever looks at the skills.
    assert bool(engine.unasked(values)) is (connection.vendor == "sqlite")


def test_nothing_is_read_where_no_skill_can_pass(env: WorkerEnv) -> None:
    write_documents(env, ["alpha", "alpha beta"])
    found = engine_of(env.database).read([["alpha"]], 5, SkillEntry.objects.none(), ("pk",), names_first=True)
    assert (len(found.keys), found.rows) == (2, {})


def test_a_search_among_those_with_a_value_follows_what_is_published(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Else few skills are looked into themselves.
    monkeypatch.setattr("marketplace.skills.filtered._FEW", 0)
    licence = "MIT's own & 'other' \\ licence"
    for number in range(3):
        publish_example(env, name=f"pdf-{number}", license=licence if number else "MIT", metadata={"tags": "office"})
    wanted = {"license": licence, "tag": "office", "verdict": "clear", "publisher": "acme", "capability": "shell"}

    def found(**filters: str) -> list[str]:
        return sorted(one.slug for one in list_skills(env, SkillFilters(query="pdf", **filters)).skills)

    assert found(**wanted) == found(license=licence) == ["pdf-1", "pdf-2"]
    publish_example(env, name="pdf-2", license="MIT", body="Again.", metadata={"tags": "music"}, verdict="notes")
    assert (found(license=licence), found(tag="music", verdict="notes")) == (["pdf-1"], ["pdf-2"])
    assert found(license=licence, tag="music") == found(tag="nothing") == []
    assert found(verdict="clear", license="MIT") == ["pdf-0"]
