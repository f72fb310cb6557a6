"""What a search finds among skills, best first: a bounded number of candidates is scored, and the rest follows.

The engine of the database finds the skills in which every word begins a token, much downloaded ones first; where none
has, the search is loosened. ``MOST_SCORED`` of them are scored: those that have every word in their names, and then the
first of the others. What else it finds comes after those, in the engine's order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, Final

from django.db.models import QuerySet

from marketplace.errors import InvalidListing
from marketplace.models import SKILL_PREFIX, SkillEntry
from marketplace.search.engine import SearchEngine
from marketplace.search.engines import engine_of
from marketplace.search.loosening import Asked, as_typed, loosened, with_stems
from marketplace.search.scoring import SCORED_FIELDS, score
from marketplace.search.text import query_terms
from marketplace.skills.nearest_skills import NAME, NearestSkills, Row
from marketplace.skills.slugs import base_slug
from marketplace.skills.visibility import listed_skills
from vskill.db import prepared_cursor
from vskill.environments import WorkerEnv
from vskill.many_keys import rows_of, with_columns

MOST_SCORED: Final = 100
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


def last_skill(env: WorkerEnv) -> int:
    """Return the highest key of a skill, 0 where there is none; call it on a database thread."""
    with prepared_cursor(env.database) as cursor:
        cursor.execute(f"SELECT MAX(id) FROM {SkillEntry._meta.db_table}")  # noqa: S608 - our own name
        return int(cursor.fetchone()[0] or 0)


class Hits:
    """The ``skills`` that a query finds; call its methods on a database thread."""

    def __init__(
        self,
        skills: QuerySet[SkillEntry],
        query: str,
        *,
        namespace: str,
        best_first: bool = True,
        columns: Collection[str] = (),
        same: Hits | None = None,
        **known: Any,
    ) -> None:
        """Begin with nothing read.

        ``namespace`` is that of the ``skills``, of which is ``known`` what ``NearestSkills`` is told. ``best_first``
        says that the best are asked for, ``columns`` are those that ``read`` reads, by default all, and ``same`` are
        other hits of the same query, by which it is known what is asked.
        """
        self._skills = skills
        self._every: QuerySet[SkillEntry] = SkillEntry.objects.using(skills.db)
        self._namespace = namespace
        self._best_first = best_first
        self._query = query
        self._given = same.asked if same is not None else None
        self._engine: SearchEngine = same._engine if same is not None else engine_of(skills.db)
        others = same._nearest if same is not None else None
        self._columns = columns
        self._nearest: NearestSkills = NearestSkills(skills, self._engine, columns=columns, same=others, **known)
        self._slug = base_slug(query[:200])
        self._first: list[Row] = []
        self._read = 0
        self._at_once = MOST_SCORED + 1
        # How many of the first have every word in their names and come before the others, where that was asked.
        self._named: int | None = None

    @cached_property
    def asked(self) -> Asked:
        """Return what is searched for: what was typed, or more loosely where nothing has all of that."""
        if self._given is not None:
            return self._given
        typed = as_typed(query_terms(self._query))
        # Most searches find something, which is wanted next: names, or first the rows that are counted.
        self._nearest.expect(with_stems(typed.terms))
        if self._finds(typed):
            return typed
        given: dict[str, Any] = {"namespace": self._namespace, "engine": self._engine}
        return loosened(typed.terms, finds=self._finds, finds_any=self._nearest.having_some, **given)

    def _finds(self, asked: Asked) -> bool:
        if self._best_first and self._at_once <= MOST_SCORED + 1:
            self._first, named = self._nearest.names_first(asked, self._at_once)
            self._named, self._read = named or None, self._at_once
        if not self._first:
            self._read_first(asked, self._at_once)
        return bool(self._first)

    def of_others(self, skills: QuerySet[SkillEntry], **known: Any) -> Hits:
        """Return what the same search finds among other ``skills``, of which is ``known`` what ``Hits`` is told."""
        return Hits(skills, self._query, namespace=self._namespace, same=self, **known)

    @property
    def _terms(self) -> tuple[str, ...]:
        return self.asked.terms

    def first(self, most: int) -> list[int]:
        """Return the keys of at most ``most`` of them."""
        return [row[0] for row in self.first_rows(most)]

    def first_rows(self, most: int) -> list[Row]:
        """Return the keys and columns of at most ``most`` of them, in the engine's order or those of names first."""
        self._at_once = max(self._at_once, most)
        asked = self.asked
        if len(self._first) == self._read < most:
            self._read_first(asked, most)
        return self._first[:most]

    def _read_first(self, asked: Asked, most: int) -> None:
        self._first, self._named, self._read = self._nearest.rows(asked, most), None, most

    def _is_few(self, number: int) -> bool:
        return len(self.first_rows(number + 1)) <= number

    def skills(self, parts: Sequence[QuerySet[SkillEntry]]) -> list[QuerySet[SkillEntry]]:
        """Return what is found as unordered queries: one, or one for each of the ``parts`` of all skills."""
        found = self._keys()
        if found is not None and len(found) <= MOST_LISTED:
            return [rows_of(self._skills, "pk", found)]
        return [self._engine.met(part, self.asked.alternatives) for part in parts]

    def _keys(self) -> list[int] | None:
        """Return at least the keys of what is found, of much more than ``MOST_LISTED`` skills one more than these.

        It is ``None`` where so many are known to be found without a search.
        """
        if self._given is None and not self._read:
            typed = as_typed(query_terms(self._query))
            found = [] if self._nearest.are_many(typed) else self._nearest.some(typed, MOST_LISTED + 1)
            if self._nearest.passes_any(found):
                self.asked = typed
                return found
        asked = self.asked
        if self._nearest.are_many(asked):
            return None
        few = len(self._first) < self._read
        return self.first(self._read) if few else self._nearest.some(asked, MOST_LISTED + 1)

    @cached_property
    def _scored(self) -> list[Place]:
        places = []
        for pk, verdict, _publisher, _license, slug, downloads, *texts in self._nearest.look_up(self._candidates()):
            fields = dict(zip(SCORED_FIELDS, texts, strict=False))
            is_slug = slug == self._slug
            places.append((score(fields, self._terms, is_slug=is_slug, downloads=downloads, verdict=verdict), pk))
        return sorted(places, reverse=True)

    def _candidates(self) -> list[int]:
        """Return the keys of what is scored: what has every word in its name comes before the rest."""
        asked = self.asked
        first, named = self._first, self._named
        if named is None:
            if self._is_few(MOST_SCORED):
                return self.first(MOST_SCORED)
            first, named = self._nearest.names_first(asked, MOST_SCORED)
            if not first:
                return self.first(MOST_SCORED)
        exact = self._exact() if named >= MOST_SCORED else []
        return list(dict.fromkeys([*exact, *(row[0] for row in first)]))[:MOST_SCORED]

    def _exact(self) -> list[int]:
        """Return the key of the skill whose slug is the query, where its name has every word."""
        entry = self._every.filter(namespace=self._namespace, key=f"{SKILL_PREFIX}{self._slug}")
        rows = self._nearest.look_up(list(entry.values_list("pk", flat=True)))
        return [row[0] for row in rows if all(f" {term}" in f" {row[NAME]}" for term in self._terms)]

    def best(self, limit: int, after: Place | None = None) -> list[Place]:
        """Return the score and key of at most ``limit`` skills, best first, those that come after ``after``."""
        found = [place for place in self._scored if after is None or place < after][:limit]
        if len(found) == limit or len(self._scored) < MOST_SCORED or self._is_few(MOST_SCORED):
            return found
        rest = self._nearest.matched(self.asked)
        if after is not None and after[0] < 0:
            rest = self._engine.below(rest, after[0] + _BELOW)
        scored = {pk for _score, pk in self._scored}
        # As many more as can have been scored.
        for position, pk in rest.values_list("search_document__id", "pk")[: limit + len(scored)]:
            if pk not in scored:
                found.append((position - _BELOW, pk))
        return found[:limit]

    def read(self, places: Sequence[Place]) -> dict[int, SkillEntry]:
        """Return the skills of ``places`` by their keys.

        Where columns are named they are read with what is scored, at once. Otherwise a skill that was withdrawn after
        it was scored is left out.
        """
        keys = [pk for _score, pk in places]
        found = self._nearest.looked_up(keys, self._columns) if self._columns else {}
        if others := [pk for pk in keys if pk not in found]:
            listed = listed_skills(rows_of(self._every, "pk", others))
            found |= {row.pk: row for row in with_columns(listed, self._columns)}
        return found
