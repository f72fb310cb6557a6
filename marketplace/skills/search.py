"""Search: an inverted index in a table, written with the skill, so that a skill is found in the moment it is published.

A word or the beginning of one is a range over the index, on every database. All words of a query must be found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add, or_
from typing import Any, Final, cast

from django.db.models import Case, F, IntegerField, Max, Q, QuerySet, Value, When

from marketplace.derived_models import SearchToken
from marketplace.models import SkillEntry
from marketplace.records import SkillRecord
from marketplace.skills.slugs import base_slug
from marketplace.skills.visibility import listed_skills
from vskill.environments import WorkerEnv
from vskill.kv.codec import prefix_end

MAX_QUERY_TERMS: Final = 8
MAX_TOKEN_LENGTH: Final = 40
MAX_TOKENS: Final = 400
_NAME_WEIGHT: Final = 100
_TAG_WEIGHT: Final = 40
_OWNER_WEIGHT: Final = 30
_TEXT_WEIGHT: Final = 10
_SLUG_BONUS: Final = 1000

_WORD: Final = re.compile(r"[^\W_]+")
# Scripts without spaces between words: Han, kana, bopomofo, hangul is spaced but agglutinates.
_CJK: Final = re.compile(
    r"[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003ffff]+"
)


def _normalised(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.encode(errors="replace").decode()


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each word, and whether it is a run of a script without spaces."""
    for word in _WORD.findall(_normalised(text)):
        place = 0
        for run in _CJK.finditer(word):
            if before := word[place : run.start()]:
                yield before, False
            yield run.group(), True
            place = run.end()
        if rest := word[place:]:
            yield rest, False


def tokenize(text: str) -> list[str]:
    """Return the tokens that the index keeps; of Chinese, Japanese and Korean, characters and pairs of them."""
    tokens: list[str] = []
    for word, joined in _words(text):
        if joined:
            tokens += word
            tokens += (word[place : place + 2] for place in range(len(word) - 1))
        else:
            tokens.append(word[:MAX_TOKEN_LENGTH])
    return tokens


def query_terms(query: str) -> list[str]:
    """Return what a query looks for, at most ``MAX_QUERY_TERMS`` terms, each the beginning of a token."""
    terms: dict[str, None] = {}
    for word, joined in _words(query[:500]):
        pairs = [word[place : place + 2] for place in range(len(word) - 1)] if joined and len(word) > 1 else [word]
        terms.update((pair[:MAX_TOKEN_LENGTH], None) for pair in pairs)
    return list(terms)[:MAX_QUERY_TERMS]


def weighed_tokens(record: SkillRecord) -> dict[str, int]:
    """Return the tokens of a skill with the highest weight that each has in it; of very many, the weightiest."""
    parts = (
        (_NAME_WEIGHT, f"{record.name} {record.display_name} {record.slug}"),
        (_TAG_WEIGHT, " ".join(record.tags)),
        (_OWNER_WEIGHT, record.publisher_handle),
        (_TEXT_WEIGHT, record.description),
    )
    weighed: dict[str, int] = {}
    for weight, text in parts:
        for token in tokenize(text[:4000]):
            weighed.setdefault(token, weight)
            if len(weighed) == MAX_TOKENS:
                return weighed
    return weighed


def index_skill(row: SkillEntry, record: SkillRecord, alias: str) -> None:
    """Replace the tokens of a skill; call it in the transaction that writes the skill."""
    tokens = SearchToken.objects.using(alias)
    tokens.filter(skill_id=row.pk).delete()
    tokens.bulk_create(
        SearchToken(namespace=row.namespace, token=token, skill_id=row.pk, weight=weight)
        for token, weight in weighed_tokens(record).items()
    )


def _range(term: str) -> Q:
    found = Q(token__gte=term)
    end = prefix_end(term)
    return found if end is None else found & Q(token__lt=end)


def matching(skills: QuerySet[SkillEntry], query: str, namespace: str) -> QuerySet[SkillEntry]:
    """Return the ``skills`` in which every word of ``query`` begins some token; none for a query without words."""
    terms = query_terms(query)
    for term in terms:
        found = SearchToken.objects.using(skills.db).filter(_range(term), namespace=namespace)
        skills = skills.filter(pk__in=found.values("skill_id"))
    return skills if terms else skills.none()


def ranked(skills: QuerySet[SkillEntry], query: str, namespace: str) -> QuerySet[Any]:
    """Return ``skill_id`` and ``score`` of the ``skills`` that match a query, as dictionaries without an order.

    One pass over the part of the index that the words span: a score computed for each skill by itself took seconds for
    words that most skills have.
    """
    terms = query_terms(query)
    tokens: Any = SearchToken.objects.using(skills.db).filter(namespace=namespace)
    scores: QuerySet[Any] = tokens.none().values("skill_id").annotate(score=Value(0))
    if not terms:
        return scores
    tokens = tokens.filter(reduce(or_, map(_range, terms)), skill_id__in=skills.order_by().values("pk"))
    bests = {}
    for number, term in enumerate(terms):
        # A whole word counts twice as much as a beginning.
        weight = Case(When(token=term, then=F("weight") * 2), default=F("weight"), output_field=IntegerField())
        bests[f"best_{number}"] = Max(weight, filter=_range(term))
    # Looked up by itself, because a join would read every skill's row for the sake of one.
    named = skills.filter(slug=base_slug(query[:200])).values_list("pk", flat=True).first()
    bonus = Max(Case(When(skill_id=named, then=Value(_SLUG_BONUS)), default=Value(0), output_field=IntegerField()))
    every_word = {f"{best}__isnull": False for best in bests}
    matched = tokens.order_by().values("skill_id").annotate(**bests, bonus=bonus).filter(**every_word)
    return cast(
        "QuerySet[Any]", matched.annotate(score=reduce(add, map(F, bests), F("bonus"))).values("skill_id", "score")
    )


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A skill that matches, and how well: above 0 and at most 1."""

    skill: SkillEntry
    score: float


def search_sync(env: WorkerEnv, query: str, *, limit: int = 20, publisher_handle: str = "") -> list[SearchHit]:
    """Return the best ``limit`` hits among the skills that are listed; none for a query without words."""
    skills = listed_skills(SkillEntry.objects.using(env.database).filter(namespace=env.name))
    if publisher_handle:
        skills = skills.filter(publisher_handle=publisher_handle)
    best = ranked(skills, query, env.name).order_by("-score", "skill_id")[: max(1, min(limit, 200))]
    scores = {hit["skill_id"]: hit["score"] for hit in best}
    rows = skills.in_bulk(scores)
    full = 2 * _NAME_WEIGHT * max(1, len(query_terms(query)))
    return [SearchHit(rows[pk], min(1.0, max(1, score) / full)) for pk, score in scores.items() if pk in rows]
