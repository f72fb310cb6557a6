"""What a search of the API answers: the best hits, and how it was loosened."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from marketplace.models import SkillEntry
from marketplace.search.loosening import Asked
from marketplace.search.scoring import share
from marketplace.search.text import words_left_out
from marketplace.skills.filter_checks import check_filters
from marketplace.skills.filtered import FilteredSkills
from marketplace.skills.filters import SkillFilters
from marketplace.skills.near_filters import near_filters
from marketplace.skills.search import check_query
from vskill.environments import WorkerEnv


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A skill that matches a query; ``score`` is above 0 and at most 1."""

    skill: SkillEntry
    score: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The best hits, best first; ``loosened`` is what was searched for where no skill has every word of the query.

    ``left_out`` are the words of the query that were not searched for, because it has too many, and ``near`` are values
    that are near to that of a filter which no skill has, by the name of the filter.
    """

    hits: list[SearchHit]
    loosened: Asked | None = None
    left_out: tuple[str, ...] = ()
    near: Mapping[str, list[str]] = field(default_factory=dict)


def search_answer(env: WorkerEnv, filters: SkillFilters, *, limit: int = 20, columns: Collection[str] = ()) -> Answer:
    """Return the best hits among the listed skills that pass ``filters``; none for a query without words.

    ``limit`` is cut to 1 to 200. ``columns`` are those that are read of each skill, by default all. Raises
    ``InvalidListing`` for a query that is too long, and for what ``check_filters`` does. Call it on a database thread.
    """
    check_query(filters.query)
    passing = FilteredSkills(env, filters, columns=columns)
    check_filters(passing)
    hits = passing.hits
    best = hits.best(max(1, min(limit, 200)))
    rows = hits.read(best)
    asked = hits.asked
    found = [SearchHit(rows[pk], share(score, len(asked.terms))) for score, pk in best if pk in rows]
    near = near_filters(passing) if not found else {}
    return Answer(found, asked if found and asked.loose else None, words_left_out(filters.query), near)


def search_sync(env: WorkerEnv, query: str, *, limit: int = 20) -> list[SearchHit]:
    """Return at most ``limit`` hits for ``query``; see ``search_answer``."""
    return search_answer(env, SkillFilters(query=query), limit=limit).hits
