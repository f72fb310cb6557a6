"""Search: an inverted index in a table, written with the skill, so that a skill is found in the moment it is published.

A word or the beginning of one is a range over the index, on every database. All words of a query must be found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Case, F, IntegerField, Max, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from marketplace.models import SearchToken, SkillEntry
from marketplace.records import SkillRecord
from marketplace.slug_rules import base_slug
from marketplace.visibility import listed_skills
from vskill.environments import WorkerEnv
from vskill.kv.codec import prefix_end
from vskill.kv.threads import readers

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
    """Return the ``skills`` in which every word of ``query`` begins some token, with ``score``; none for no word."""
    terms = query_terms(query)
    if not terms:
        return skills.none().annotate(score=Value(0, output_field=IntegerField()))
    score = Case(
        When(slug=base_slug(query[:200]), then=Value(_SLUG_BONUS)), default=Value(0), output_field=IntegerField()
    )
    for term in terms:
        found = SearchToken.objects.using(skills.db).filter(_range(term), namespace=namespace)
        skills = skills.filter(pk__in=found.values("skill_id"))
        weight = Case(When(token=term, then=F("weight") * 2), default=F("weight"), output_field=IntegerField())
        best = (
            found.filter(skill_id=OuterRef("pk"))
            .order_by()
            .values("skill_id")
            .annotate(best=Max(weight))
            .values("best")
        )
        score = score + Coalesce(Subquery(best, output_field=IntegerField()), Value(0))  # type: ignore[assignment]  # an expression
    return skills.annotate(score=score)


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A skill that matches, and how well: above 0 and at most 1."""

    skill: SkillEntry
    score: float


def search_sync(env: WorkerEnv, query: str, *, limit: int = 20, publisher_handle: str = "") -> list[SearchHit]:
    """Return the best ``limit`` hits; see ``search``."""
    skills = listed_skills(SkillEntry.objects.using(env.database).filter(namespace=env.name))
    if publisher_handle:
        skills = skills.filter(publisher_handle=publisher_handle)
    found: QuerySet[Any] = matching(skills, query, env.name)
    rows = found.order_by("-score", "-downloads", "slug")[: max(1, min(limit, 200))]
    full = 2 * _NAME_WEIGHT * max(1, len(query_terms(query)))
    return [SearchHit(row, min(1.0, max(1, row.score) / full)) for row in rows]


async def search(env: WorkerEnv, query: str, *, limit: int = 20, publisher_handle: str = "") -> list[SearchHit]:
    """Return the best hits for a query among the skills that are shown; none for a query without words."""
    return await readers.run(search_sync, env, query, limit=limit, publisher_handle=publisher_handle)
