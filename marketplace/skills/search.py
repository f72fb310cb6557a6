"""What a search finds among skills, best first: a bounded number of candidates is scored, and the rest follows.

The engine of the database finds the skills in which every word begins a token, much downloaded ones first; where none
has, the search is loosened. The first ``MOST_SCORED`` of them are scored (on PostgreSQL of those in which every word is
a token, where there are so many), and before them as many that have every word in their names. What else it finds
comes after those, in the engine's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from django.db.models import QuerySet

from marketplace.errors import InvalidListing
from marketplace.models import SKILL_PREFIX, SkillEntry
from marketplace.search.engine import SearchEngine
from marketplace.search.engines import engine_of
from marketplace.search.loosening import Asked, as_typed, loosened
from marketplace.search.scoring import SCORED_FIELDS, score
from marketplace.search.text import query_terms
from marketplace.skills.many_keys import rows_of
from marketplace.skills.slugs import base_slug

MOST_SCORED: Final = 100
MOST_LISTED: Final = 1000
# So many skills with one term are looked up to say whether any passes, and then as many are looked for.
_OF_A_TERM: Final = 25
_LOOKED_AT: Final = 200
# Where fewer of the nearest documents than one of sixteen pass, the engine and the filters are asked together.
_MOST_LOOKED_UP: Final = 2000
MAX_QUERY_LENGTH: Final = 1000
# Positions become negative scores, below those of all that is scored.
_BELOW: Final = 2**62

# What the facets of a list are counted by: columns of a skill.
COLUMNS: Final = ("verdict", "publisher_handle", "license")

# What is read of a skill, so that what is counted can be scored without another statement.
_READ: Final = ("pk", *COLUMNS, "slug", "downloads", *(f"search_document__{name}" for name in SCORED_FIELDS))

Place = tuple[int, int]
Row = tuple[Any, ...]
"""The key of a skill, its ``COLUMNS``, and of a hit also what it is scored by."""


def check_query(query: str) -> None:
    """Raise ``InvalidListing`` for a query of more than ``MAX_QUERY_LENGTH`` characters."""
    if len(query) > MAX_QUERY_LENGTH:
        raise InvalidListing(
            f"The search has {len(query)} characters, and at most {MAX_QUERY_LENGTH} are searched for. Nothing was "
            "searched: use fewer words."
        )


class Hits:
    """The ``skills`` that a query finds; call its methods on a database thread."""

    def __init__(
        self,
        skills: QuerySet[SkillEntry],
        query: str,
        *,
        few: bool = False,
        keys: QuerySet[Any] | None = None,
        share: float = 1,
        namespace: str,
        best_first: bool = True,
        same: Hits | None = None,
    ) -> None:
        """Begin with nothing read.

        ``namespace`` is that of the ``skills``, of which no index is followed. ``few`` says that these are few,
        whatever the words are. ``keys`` returns the keys of all of them and of not many others, else of all skills, and
        ``share`` is about which part of these they are. ``best_first`` says that the best are asked for, and ``same``
        are other hits of the same query, by which it is known what is asked.
        """
        self._skills = skills
        self._every: QuerySet[SkillEntry] = SkillEntry.objects.using(skills.db)
        self._few = few
        self._keys = keys
        self._share = share
        self._namespace = namespace
        self._best_first = best_first
        self._query = query
        self._given = same.asked if same is not None else None
        self._engine: SearchEngine = same._engine if same is not None else engine_of(skills.db)
        self._slug = base_slug(query[:200])
        self._first: list[Row] = []
        self._read = 0
        self._at_once = MOST_SCORED + 1
        self._names: list[Row] | None = None
        # What was read of documents, with how many were wanted, and of their skills.
        self._documents: dict[tuple[Asked, bool, bool], tuple[int, list[int]]] = {}
        if same is not None and same._keys is keys:
            self._documents = same._documents
        self._looked_up: dict[int, Row | None] = {}

    @cached_property
    def asked(self) -> Asked:
        """Return what is searched for: what was typed, or more loosely where nothing has all of that."""
        if self._given is not None:
            return self._given
        typed = as_typed(query_terms(self._query))
        # Most searches find something, which is wanted next: names, or first the rows that are counted.
        if self._best_first and self._at_once <= MOST_SCORED + 1:
            self._names = self._read_names(typed)
            if self._names:
                return typed
        self._read_first(typed, self._at_once)
        if self._first:
            return typed
        self._read, self._names = 0, None
        given: dict[str, Any] = {"namespace": self._namespace, "engine": self._engine}
        return loosened(typed.terms, finds=self._finds, finds_any=self._finds_any, **given)

    def _finds(self, asked: Asked) -> bool:
        self._read_first(asked, self._at_once)
        return bool(self._first)

    def _finds_any(self, term: str, *, in_names: bool = False) -> bool:
        """Return whether a term finds any of the skills, or the name of one."""
        if not self._few:
            near = self._engine.nearest([[term]], _OF_A_TERM, in_names=in_names, among=self._keys)
            if self._any_passes(near) or len(near) < _OF_A_TERM:
                return self._any_passes(near)
        matched = self._engine.matching(self._skills, [[term]], in_names=in_names, few=self._few)
        # Asked for one alone, PostgreSQL reads documents until it meets it.
        return bool(self._engine.by_position(matched).values_list("pk", flat=True)[:_LOOKED_AT])

    def _any_passes(self, keys: Sequence[int]) -> bool:
        self._look_up(keys)
        return any(self._looked_up[pk] is not None for pk in keys)

    def among(self, skills: QuerySet[SkillEntry], *, few: bool = False, keys: QuerySet[Any] | None = None) -> Hits:
        """Return what the same search finds among other ``skills``; ``few`` and ``keys`` are those of ``Hits``."""
        return Hits(skills, self._query, few=few, keys=keys, namespace=self._namespace, same=self)

    @property
    def _terms(self) -> tuple[str, ...]:
        return self.asked.terms

    def first(self, most: int) -> list[int]:
        """Return the keys of at most ``most`` of them, in the engine's order."""
        return [row[0] for row in self.first_rows(most)]

    def first_rows(self, most: int) -> list[Row]:
        """Return the keys and columns of at most ``most`` of them, in the engine's order."""
        self._at_once = max(self._at_once, most)
        asked = self.asked
        if len(self._first) == self._read < most:
            self._read_first(asked, most)
        return self._first[:most]

    def _read_first(self, asked: Asked, most: int) -> None:
        self._first, self._read = self._rows(asked, most), most

    def _rows(self, asked: Asked, most: int) -> list[Row]:
        # Whole words come first where there are enough: they score higher, and what begins with several words is read
        # by PostgreSQL in four times the time.
        for whole in (True, False):
            if (rows := self._nearest(asked, most, whole_words=whole)) is not None:
                return rows
        return list(self._matched(asked).values_list(*_READ)[:most])

    def _matched(self, asked: Asked, *, in_names: bool = False) -> QuerySet[SkillEntry]:
        found = self._engine.matching(self._skills, asked.alternatives, in_names=in_names, few=self._few)
        return self._engine.by_position(found)

    def _nearest(
        self, asked: Asked, most: int, *, in_names: bool = False, whole_words: bool = False
    ) -> list[Row] | None:
        """Return the first rows by the nearest documents, ``None`` where there are too few of these to tell."""
        # Some are left out by what else the skills pass.
        some = min(int((most + most // 4) / self._share), _MOST_LOOKED_UP)
        while True:
            near = self._near(asked, some, in_names=in_names, whole_words=whole_words)
            if near is None or (whole_words and len(near) < some):
                return None
            following: list[int] = []
            if in_names and len(near) < MOST_SCORED:
                # What else has the words is scored beside them: the skills of both are looked up by one statement.
                following = self._following(asked)
            self._look_up([*near, *following])
            rows = [row for pk in near if (row := self._looked_up[pk]) is not None][:most]
            if len(rows) == most or len(near) < some:
                return rows
            # As many as hold enough, if as large a part of them passes.
            some = some * (most + most // 4) // max(1, len(rows))
            if some > _MOST_LOOKED_UP:
                return None

    def _following(self, asked: Asked) -> list[int]:
        """Return the keys of the nearest documents as ``_rows`` will read them."""
        some = min(int((self._at_once + self._at_once // 4) / self._share), _MOST_LOOKED_UP)
        whole = self._near(asked, some, in_names=False, whole_words=True) or []
        return whole if len(whole) == some else self._near(asked, some, in_names=False, whole_words=False) or []

    def _near(self, asked: Asked, some: int, *, in_names: bool, whole_words: bool) -> list[int] | None:
        """Return the keys of the nearest documents; ``None`` where few skills are looked into themselves."""
        if self._few:
            return None
        limit, found = self._documents.get((asked, in_names, whole_words), (0, []))
        if some > limit:
            kind: dict[str, Any] = {"in_names": in_names, "whole_words": whole_words, "among": self._keys}
            limit, found = some, self._engine.nearest(asked.alternatives, some, **kind)
            self._documents[asked, in_names, whole_words] = (limit, found)
        return found[:some]

    def _look_up(self, keys: Sequence[int]) -> None:
        """Read the rows of skills that pass, and remember which do not."""
        if new := [pk for pk in dict.fromkeys(keys) if pk not in self._looked_up]:
            passing = {row[0]: row for row in rows_of(self._skills, "pk", new).values_list(*_READ)}
            self._looked_up |= {pk: passing.get(pk) for pk in new}

    def _is_few(self, number: int) -> bool:
        return len(self.first_rows(number + 1)) <= number

    def skills(self, parts: Sequence[QuerySet[SkillEntry]]) -> list[QuerySet[SkillEntry]]:
        """Return what is found as unordered queries: one, or one for each of the ``parts`` of all skills."""
        found: list[int] = []
        if self._given is None and not self._read:
            typed = as_typed(query_terms(self._query))
            found = self._in_no_order(typed)
            if self._any_passes(found[:_OF_A_TERM]) or self._any_passes(found):
                self.asked = typed
            else:
                found = []
        asked = self.asked
        if not found:
            found = self.first(self._read) if len(self._first) < self._read else self._in_no_order(asked)
        if len(found) <= MOST_LISTED:
            return [rows_of(self._skills, "pk", found)]
        return [self._engine.met(part, asked.alternatives) for part in parts]

    def _in_no_order(self, asked: Asked) -> list[int]:
        """Return the keys of at most one more than ``MOST_LISTED`` skills in which the terms are."""
        if self._few:
            return list(self._matched(asked).values_list("pk", flat=True))
        return self._engine.some(asked.alternatives, MOST_LISTED + 1, among=self._keys)

    @cached_property
    def _scored(self) -> list[Place]:
        candidates = self._candidates()
        read = {row[0]: row for row in (*self._first, *(self._names or ()))}
        if others := [pk for pk in candidates if pk not in read]:
            # By their keys alone: what else they pass is known, and SQLite would follow an index past all others.
            read |= {row[0]: row for row in rows_of(self._every, "pk", others).values_list(*_READ)}
        places = []
        for pk, verdict, _publisher, _license, slug, downloads, *texts in (
            read[one] for one in candidates if one in read
        ):
            fields = dict(zip(SCORED_FIELDS, texts, strict=True))
            is_slug = slug == self._slug
            places.append((score(fields, self._terms, is_slug=is_slug, downloads=downloads, verdict=verdict), pk))
        return sorted(places, reverse=True)

    def _candidates(self) -> list[int]:
        """Return the keys of what is scored: what has every word in its name comes before the rest."""
        asked = self.asked
        if self._names is None:
            if self._is_few(MOST_SCORED):
                return self.first(MOST_SCORED)
            self._names = self._read_names(asked)
        names = [row[0] for row in self._names]
        if len(names) < MOST_SCORED:
            return list(dict.fromkeys([*names, *self.first(MOST_SCORED)]))[:MOST_SCORED]
        return list(dict.fromkeys([*self._exact(), *names]))[:MOST_SCORED]

    def _read_names(self, asked: Asked) -> list[Row]:
        if (rows := self._nearest(asked, MOST_SCORED, in_names=True)) is not None:
            return rows
        return list(self._matched(asked, in_names=True).values_list(*_READ)[:MOST_SCORED])

    def _exact(self) -> list[int]:
        """Return the key of the skill whose slug is the query, where its name has every word."""
        entry = self._every.filter(namespace=self._namespace, key=f"{SKILL_PREFIX}{self._slug}")
        found = list(entry.values_list("pk", flat=True))
        self._look_up(found)
        rows = [row for pk in found if (row := self._looked_up[pk]) is not None]
        names = {row[0]: row[_READ.index("search_document__name")] for row in rows}
        return [pk for pk, name in names.items() if all(f" {term}" in f" {name}" for term in self._terms)]

    def best(self, limit: int, after: Place | None = None) -> list[Place]:
        """Return the score and key of at most ``limit`` skills, best first, those that come after ``after``."""
        found = [place for place in self._scored if after is None or place < after][:limit]
        if len(found) == limit or len(self._scored) < MOST_SCORED or self._is_few(MOST_SCORED):
            return found
        rest = self._matched(self.asked)
        if after is not None and after[0] < 0:
            rest = self._engine.below(rest, after[0] + _BELOW)
        scored = {pk for _score, pk in self._scored}
        # As many more as can have been scored.
        for position, pk in rest.values_list("search_document__id", "pk")[: limit + len(scored)]:
            if pk not in scored:
                found.append((position - _BELOW, pk))
        return found[:limit]
