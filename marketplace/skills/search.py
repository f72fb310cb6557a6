"""Search: an inverted index in a table, written in the same transaction as the skill.

A query finds the skills in which every one of its words begins some token. On every database, that is a range over
the index for each word.
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
# Scripts that are indexed by character pairs: Han, kana and bopomofo have no spaces between words, and in Hangul, which
# has them, endings are glued to the word.
_CJK: Final = re.compile(
    r"[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003ffff]+"
)


def _normalised(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.encode(errors="replace").decode()


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each word, and whether it is a run of characters that ``_CJK`` matches."""
    for word in _WORD.findall(_normalised(text)):
        end = 0
        for run in _CJK.finditer(word):
            if before := word[end : run.start()]:
                yield before, False
            yield run.group(), True
            end = run.end()
        if rest := word[end:]:
            yield rest, False


def tokenize(text: str) -> list[str]:
    """Return the tokens of a text for the index: words, or single characters and pairs in Chinese, Japanese, Korean."""
    tokens: list[str] = []
    for word, is_cjk in _words(text):
        if is_cjk:
            tokens += word
            tokens += _pairs(word)
        else:
            tokens.append(word[:MAX_TOKEN_LENGTH])
    return tokens


def _pairs(word: str) -> list[str]:
    return [word[start : start + 2] for start in range(len(word) - 1)]


def query_terms(query: str) -> list[str]:
    """Return the distinct terms of a query, at most ``MAX_QUERY_TERMS``; each has to be the prefix of a token."""
    terms: dict[str, None] = {}
    for word, is_cjk in _words(query[:500]):
        parts = _pairs(word) if is_cjk and len(word) > 1 else [word]
        terms.update((part[:MAX_TOKEN_LENGTH], None) for part in parts)
    return list(terms)[:MAX_QUERY_TERMS]


def weighted_tokens(record: SkillRecord) -> dict[str, int]:
    """Return the tokens of a skill, each with its highest weight; at most ``MAX_TOKENS``, highest weights first."""
    parts = (
        (_NAME_WEIGHT, f"{record.name} {record.display_name} {record.slug}"),
        (_TAG_WEIGHT, " ".join(record.tags)),
        (_OWNER_WEIGHT, record.publisher_handle),
        (_TEXT_WEIGHT, record.description),
    )
    weights: dict[str, int] = {}
    for weight, text in parts:
        for token in tokenize(text[:4000]):
            weights.setdefault(token, weight)
            if len(weights) == MAX_TOKENS:
                return weights
    return weights


def index_skill(row: SkillEntry, record: SkillRecord, alias: str) -> None:
    """Replace the tokens of a skill by those of ``record``, in the database ``alias`` and the caller's transaction."""
    tokens = SearchToken.objects.using(alias)
    tokens.filter(skill_id=row.pk).delete()
    tokens.bulk_create(
        SearchToken(namespace=row.namespace, token=token, skill_id=row.pk, weight=weight)
        for token, weight in weighted_tokens(record).items()
    )


def _range(term: str) -> Q:
    found = Q(token__gte=term)
    end = prefix_end(term)
    return found if end is None else found & Q(token__lt=end)


def matching(skills: QuerySet[SkillEntry], query: str, namespace: str) -> QuerySet[SkillEntry]:
    """Return the ``skills`` in which every word of ``query`` is the prefix of a token; none for a query without words.

    ``namespace`` is the name of their environment.
    """
    terms = query_terms(query)
    for term in terms:
        found = SearchToken.objects.using(skills.db).filter(_range(term), namespace=namespace)
        skills = skills.filter(pk__in=found.values("skill_id"))
    return skills if terms else skills.none()


def ranked(skills: QuerySet[SkillEntry], query: str, namespace: str) -> QuerySet[Any]:
    """Return ``skill_id`` and ``score`` of the ``skills`` that match a query, as unordered dictionaries.

    ``namespace`` is the name of their environment. The query is one pass over the ranges of its words in the index; a
    subquery for each skill's score took seconds for words that most skills have.
    """
    terms = query_terms(query)
    tokens: Any = SearchToken.objects.using(skills.db).filter(namespace=namespace)
    scores: QuerySet[Any] = tokens.none().values("skill_id").annotate(score=Value(0))
    if not terms:
        return scores
    tokens = tokens.filter(reduce(or_, map(_range, terms)), skill_id__in=skills.order_by().values("pk"))
    bests = {}
    for number, term in enumerate(terms):
        # A whole word counts twice as much as a prefix.
        weight = Case(When(token=term, then=F("weight") * 2), default=F("weight"), output_field=IntegerField())
        bests[f"best_{number}"] = Max(weight, filter=_range(term))
    # A query of its own, because a join would read the row of every skill to find one.
    named = skills.filter(slug=base_slug(query[:200])).values_list("pk", flat=True).first()
    bonus = Max(Case(When(skill_id=named, then=Value(_SLUG_BONUS)), default=Value(0), output_field=IntegerField()))
    every_word = {f"{best}__isnull": False for best in bests}
    matched = tokens.order_by().values("skill_id").annotate(**bests, bonus=bonus).filter(**every_word)
    return cast(
        "QuerySet[Any]", matched.annotate(score=reduce(add, map(F, bests), F("bonus"))).values("skill_id", "score")
    )


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A skill that matches a query; ``score`` is above 0 and at most 1."""

    skill: SkillEntry
    score: float


def search_sync(env: WorkerEnv, query: str, *, limit: int = 20, publisher_handle: str = "") -> list[SearchHit]:
    """Return the best hits among the listed skills, best first; none for a query without words.

    ``limit`` is cut to 1 to 200, and ``publisher_handle`` restricts the hits to one publisher. Call it on a database
    thread.
    """
    skills = listed_skills(SkillEntry.objects.using(env.database).filter(namespace=env.name))
    if publisher_handle:
        skills = skills.filter(publisher_handle=publisher_handle)
    best = ranked(skills, query, env.name).order_by("-score", "skill_id")[: max(1, min(limit, 200))]
    scores = {hit["skill_id"]: hit["score"] for hit in best}
    rows = skills.in_bulk(scores)
    full = 2 * _NAME_WEIGHT * max(1, len(query_terms(query)))
    return [SearchHit(rows[pk], min(1.0, max(1, score) / full)) for pk, score in scores.items() if pk in rows]
