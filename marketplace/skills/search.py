"""What a search finds among skills, best first: a bounded number of candidates is scored, and the rest follows.

The engine of the database finds the skills in which every word begins a token, much downloaded ones first; where none
has, the search is loosened. The first ``MOST_SCORED`` of them are scored, and before them as many that have every word
in their names. What else it finds comes after those, in the engine's order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from django.db.models import QuerySet

from marketplace.errors import InvalidListing
from marketplace.models import SkillEntry
from marketplace.search.engines import by_position, keys, matching
from marketplace.search.loosening import Asked, as_typed, loosened
from marketplace.search.scoring import SCORED_FIELDS, score, share
from marketplace.search.text import query_terms
from marketplace.skills.slugs import base_slug
from marketplace.skills.visibility import listed_skills
from vskill.environments import WorkerEnv

MOST_SCORED: Final = 200
MOST_LISTED: Final = 1000
MAX_QUERY_LENGTH: Final = 1000
# Positions become negative scores, below those of all that is scored.
_BELOW: Final = 2**62

Place = tuple[int, int]


def check_query(query: str) -> None:
    """Raise ``InvalidListing`` for a query of more than ``MAX_QUERY_LENGTH`` characters."""
    if len(query) > MAX_QUERY_LENGTH:
        raise InvalidListing(
            f"The search has {len(query)} characters, and at most {MAX_QUERY_LENGTH} are searched for. Nothing was "
            "searched: use fewer words."
        )


class Hits:
    """The ``skills`` that a query finds; call its methods on a database thread."""

    def __init__(self, skills: QuerySet[SkillEntry], query: str, asked: Asked | None = None) -> None:
        """Begin with nothing read; ``asked`` is what other hits of the same query were searched by."""
        self._skills = skills
        self._query = query
        self._given = asked
        self._slug = base_slug(query[:200])
        self._first: list[int] = []
        self._read = 0

    @cached_property
    def asked(self) -> Asked:
        """Return what is searched for: what was typed, or more loosely where nothing has all of that."""
        if self._given is not None:
            return self._given
        typed = as_typed(query_terms(self._query))
        # Most searches find something, and its rows are wanted next.
        self._read_first(typed, MOST_SCORED + 1)
        if self._first:
            return typed
        self._read = 0
        return loosened(self._skills, typed.terms)

    def among(self, skills: QuerySet[SkillEntry]) -> Hits:
        """Return what the same search finds among other ``skills``."""
        return Hits(skills, self._query, self.asked)

    @property
    def _terms(self) -> tuple[str, ...]:
        return self.asked.terms

    def first(self, most: int) -> list[int]:
        """Return the keys of at most ``most`` of them, in the engine's order."""
        asked = self.asked
        if len(self._first) == self._read < most:
            self._read_first(asked, most)
        return self._first[:most]

    def _read_first(self, asked: Asked, most: int) -> None:
        found = by_position(matching(self._skills, asked.alternatives))
        self._first, self._read = list(found.values_list("pk", flat=True)[:most]), most

    def _is_few(self, number: int) -> bool:
        return len(self.first(number + 1)) <= number

    def skills(self) -> QuerySet[SkillEntry]:
        """Return what is found as an unordered query."""
        if self._is_few(MOST_LISTED):
            return self._skills.filter(pk__in=self.first(MOST_LISTED))
        # Without a join, so that an index of another order can be followed.
        return self._skills.filter(pk__in=keys(self._skills.db, self.asked.alternatives))

    @cached_property
    def _scored(self) -> list[Place]:
        candidates = self.first(MOST_SCORED)
        if not self._is_few(MOST_SCORED):
            candidates = list(dict.fromkeys([*self._named(), *candidates]))[:MOST_SCORED]
        columns = [f"search_document__{name}" for name in SCORED_FIELDS]
        rows = self._skills.filter(pk__in=candidates).values_list("pk", "slug", "downloads", "verdict", *columns)
        places = []
        for pk, slug, downloads, verdict, *texts in rows:
            fields = dict(zip(SCORED_FIELDS, texts, strict=True))
            is_slug = slug == self._slug
            places.append((score(fields, self._terms, is_slug=is_slug, downloads=downloads, verdict=verdict), pk))
        return sorted(places, reverse=True)

    def _named(self) -> list[int]:
        named = by_position(matching(self._skills, self.asked.alternatives, in_names=True)).values_list("pk", flat=True)
        exact = self._skills.filter(slug=self._slug).values_list("pk", "search_document__name")
        whole = [pk for pk, name in exact if name and all(f" {term}" in f" {name}" for term in self._terms)]
        return [*whole, *named[:MOST_SCORED]]

    def best(self, limit: int, after: Place | None = None) -> list[Place]:
        """Return the score and key of at most ``limit`` skills, best first, those that come after ``after``."""
        found = [place for place in self._scored if after is None or place < after][:limit]
        if len(found) == limit or self._is_few(MOST_SCORED):
            return found
        rest = by_position(matching(self._skills, self.asked.alternatives))
        if after is not None and after[0] < 0:
            rest = rest.filter(search_document__id__lt=after[0] + _BELOW)
        scored = {pk for _score, pk in self._scored}
        # As many more as can have been scored.
        for position, pk in rest.values_list("search_document__id", "pk")[: limit + len(scored)]:
            if pk not in scored:
                found.append((position - _BELOW, pk))
        return found[:limit]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A skill that matches a query; ``score`` is above 0 and at most 1."""

    skill: SkillEntry
    score: float


def search_sync(env: WorkerEnv, query: str, *, limit: int = 20, publisher_handle: str = "") -> list[SearchHit]:
    """Return the best hits among the listed skills, best first; none for a query without words.

    ``limit`` is cut to 1 to 200, and ``publisher_handle`` restricts the hits to one publisher. Raises
    ``InvalidListing`` for a query that is too long. Call it on a database thread.
    """
    check_query(query)
    skills = listed_skills(SkillEntry.objects.using(env.database).filter(namespace=env.name))
    if publisher_handle:
        skills = skills.filter(publisher_handle=publisher_handle)
    hits = Hits(skills, query)
    best = hits.best(max(1, min(limit, 200)))
    rows = skills.in_bulk([pk for _score, pk in best])
    terms = len(hits.asked.terms)
    return [SearchHit(rows[pk], share(score, terms)) for score, pk in best if pk in rows]
