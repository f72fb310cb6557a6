"""Lists of skills: filters, sort orders, facets with counts, and keyset cursors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from django.db import connections
from django.db.models import Q, QuerySet

from marketplace.errors import InvalidListing
from marketplace.models import SkillEntry
from marketplace.search.loosening import Asked
from marketplace.search.text import words_left_out
from marketplace.skills.counts import COUNTED_TOGETHER
from marketplace.skills.filter_checks import check_filters
from marketplace.skills.filtered import FilteredSkills
from marketplace.skills.filters import EVERY_SKILL, FacetValue, HowMany, SkillFilters
from marketplace.skills.near_filters import near_filters
from marketplace.skills.search import Place, check_query, last_skill
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.codec import check_key
from vskill.kv.cursors import decode_cursor, encode_cursor
from vskill.kv.errors import InvalidKey
from vskill.many_keys import with_columns
from vskill.visitors.reads import list_reads

MAX_PAGE: Final = 200
# The column of each sort order, and whether it descends. The row's number breaks ties, so that every order is total.
SORTS: Final[dict[str, tuple[str, bool]]] = {
    "newest": ("published_at", True),
    "updated": ("changed_at", True),
    "name": ("slug", False),
    "downloads": ("downloads", True),
    "trending": ("recent_downloads", True),
    "relevance": ("score", True),
}
BY_WORDS: Final = "relevance"
_TIMES: Final = ("published_at", "changed_at")
_TOO_LARGE: Final = 2**63


@dataclass(frozen=True)
class SkillPage:
    """A page of a list.

    ``next_cursor`` continues the list and is ``None`` on the last page. ``total`` is the length of the whole list,
    ``None`` unless the caller had it counted, and ``facets`` are those that it asked for. ``loosened`` is what was
    searched for where no skill has every word of the query, and ``left_out`` are the words for which it had no room.
    ``near`` are values that are near to that of a filter which no skill has, by the name of the filter.
    """

    skills: tuple[SkillEntry, ...]
    next_cursor: str | None
    total: HowMany | None = None
    facets: Mapping[str, list[FacetValue]] = field(default_factory=dict)
    loosened: Asked | None = None
    left_out: tuple[str, ...] = ()
    near: Mapping[str, list[str]] = field(default_factory=dict)


def list_skills(
    env: WorkerEnv,
    filters: SkillFilters = EVERY_SKILL,
    *,
    sort: str = "",
    limit: int = 25,
    cursor: str | None = None,
    count: bool = False,
    facets: Collection[str] = (),
    columns: Collection[str] = (),
    strict: bool = False,
) -> SkillPage:
    """Return one page of the listed skills; call it on a database thread.

    ``filters`` narrow the list. ``sort`` is a key of ``SORTS``, by default ``relevance`` where there is a query and
    ``newest`` otherwise. ``limit`` is cut to 1 to ``MAX_PAGE``. ``cursor`` is the ``next_cursor`` of a page with the
    same filters and order; the page starts after the last skill of that one, so skills that are published meanwhile
    neither repeat nor hide another. ``count`` has the whole list counted, and each of ``facets``. ``columns`` are those
    that are read of each skill, by default all. Raises ``InvalidListing`` for another order or cursor, and with
    ``strict``, for visitors who choose filters, for what ``check_filters`` does; an empty page then has what is
    ``near``.
    """
    sort = sort or ("relevance" if filters.query else "newest")
    check_order(sort, SORTS, with_words=bool(filters.query))
    check_query(filters.query)
    limit = max(1, min(limit, MAX_PAGE))
    binding = _binding(env, filters, sort)
    after: Place | None = None
    last: int | None = None
    if sort == "relevance":
        # What is published while somebody reads on is not looked at: it could take the place of another skill among
        # those that are scored, or be found as it was typed where nothing was.
        after, last = _read_place(cursor, binding) if cursor else (None, last_skill(env))
    asked: dict[str, Any] = {"facets": facets, "columns": columns, "best_first": sort == "relevance"}
    found = FilteredSkills(env, filters, last=last, **asked)
    if strict:
        check_filters(found)
    # Before the page, which needs the first of what is counted.
    total = found.how_many() if count else None
    if last is not None:
        page, following = _best(found, limit, after, last, binding)
    else:
        page, following = _page(env, found, columns, sort, limit, cursor, binding)
    counted = {name: found.facet(name) for name in facets}
    searched = found.hits.asked if filters.query else None
    loosened = searched if searched is not None and searched.loose else None
    near = near_filters(found) if strict and not page else {}
    return SkillPage(tuple(page), following, total, counted, loosened, words_left_out(filters.query), near)


def check_order(sort: str, known: Collection[str], *, with_words: bool) -> None:
    """Raise ``InvalidListing`` where ``sort`` is not among the ``known`` orders, or orders by words that are missing.

    ``with_words`` says that there are words to search for.
    """
    without = ", ".join(one for one in known if one != BY_WORDS)
    if sort == BY_WORDS and not with_words:
        raise InvalidListing(f"The order {BY_WORDS} needs words to search for. Without them, choose one of: {without}.")
    if sort not in known:
        words = f", or {BY_WORDS} with words to search for" if BY_WORDS in known else ""
        raise InvalidListing(f"A list has no order {visible(sort, 40)!r}. Choose one of: {without}{words}.")


def _page(
    env: WorkerEnv,
    found: FilteredSkills,
    columns: Collection[str],
    sort: str,
    limit: int,
    cursor: str | None,
    binding: str,
) -> tuple[list[SkillEntry], str | None]:
    column, descending = SORTS[sort]
    sign = "-" if descending else ""
    order = (f"{sign}{column}", f"{sign}pk")
    read = (*columns, column) if columns else ()
    parts = [with_columns(rows, read).order_by(*order) for rows in found.parts()]
    after = _after(column, descending, env.database, *_read_cursor(cursor, column, binding)) if cursor else [Q()]
    page: list[SkillEntry] = []
    for one in after:
        if (left := limit + 1 - len(page)) > 0:
            following = [part.filter(one)[:left] for part in parts]
            if found.meets_others:
                following = [with_columns(_keys_first(rows), read).order_by(*order) for rows in following]
            rows = [list(some) for some in following]
            page += rows[0] if len(rows) == 1 else _merged(rows, column, descending, env.database)[:left]
    shown = page[:limit]
    more = len(page) > limit
    return shown, _make_cursor(getattr(shown[-1], column), shown[-1].pk, binding) if more else None


def _keys_first(rows: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
    """Return the ``rows``, of which the keys are found first: an index has all that is asked of those that are met."""
    every: QuerySet[SkillEntry] = SkillEntry.objects.using(rows.db)
    return every.filter(pk__in=rows.values("pk"))


def _merged(parts: list[list[SkillEntry]], column: str, descending: bool, alias: str) -> list[SkillEntry]:
    """Return the rows of several queries in the order that each of them has."""
    rows = [row for part in parts for row in part]
    there = [row for row in rows if getattr(row, column) is not None]
    there.sort(key=lambda row: (getattr(row, column), row.pk), reverse=descending)
    nulls = sorted((row for row in rows if getattr(row, column) is None), key=lambda row: row.pk, reverse=descending)
    return [*there, *nulls] if _nulls_last(descending, alias) else [*nulls, *there]


def _best(
    found: FilteredSkills, limit: int, after: Place | None, last: int, binding: str
) -> tuple[list[SkillEntry], str | None]:
    places = found.hits.best(limit + 1, after)
    skills = found.hits.read(places[:limit])
    shown = [skills[pk] for _score, pk in places[:limit] if pk in skills]
    if len(places) <= limit:
        return shown, None
    score, pk = places[limit - 1]
    return shown, encode_cursor(binding, [score, last], pk)


async def get_published_skills_list(
    env: WorkerEnv,
    filters: SkillFilters = EVERY_SKILL,
    *,
    sort: str = "",
    limit: int = 25,
    cursor: str | None = None,
    count: bool = False,
    facets: Collection[str] = (),
) -> SkillPage:
    """Return one page of the listed skills, read by queries over indexed columns; see ``list_skills``.

    ``filters`` narrow it, ``sort`` orders it, ``limit`` is the size of the page, ``cursor`` continues after a page
    before, ``count`` has the whole list counted, and each of ``facets``. Raises ``InvalidListing``.
    """
    asked: dict[str, Any] = {"sort": sort, "limit": limit, "cursor": cursor, "count": count, "facets": facets}
    return await list_reads.run(list_skills, env, filters, **asked)


def facet_counts(
    env: WorkerEnv, filters: SkillFilters, names: Collection[str] = COUNTED_TOGETHER
) -> dict[str, list[FacetValue]]:
    """Return the values of each facet in ``names`` with the number of their skills, the most frequent first.

    A facet's counts follow all ``filters`` but its own. See ``FilteredSkills.facet``.
    """
    found = FilteredSkills(env, filters, facets=names)
    return {name: found.facet(name) for name in names}


def _binding(env: WorkerEnv, filters: SkillFilters, sort: str) -> str:
    return hashlib.sha256(json.dumps([env.name, sort, *astuple(filters)]).encode()).hexdigest()[:12]


def _make_cursor(value: Any, pk: int, binding: str) -> str:
    return encode_cursor(binding, value.isoformat() if isinstance(value, datetime) else value, pk)


def _read_cursor(cursor: str, column: str, binding: str) -> tuple[datetime | str | int | None, int]:
    """Return the position that a cursor continues after: the value of the sort column and the row's number.

    Clients can forge a cursor, so each value is checked before it reaches a query.
    """
    with _refusing():
        value, pk = _bound_to(cursor, binding)
        return _column_value(column, value), _integer(pk)


def _read_place(cursor: str, binding: str) -> tuple[Place, int]:
    """Return the place that a cursor of a search continues after, and the last skill that is looked at."""
    with _refusing():
        (score, last), pk = _bound_to(cursor, binding)
        return (_integer(score), _integer(pk)), _integer(last)


def _bound_to(cursor: str, binding: str) -> tuple[Any, Any]:
    bound, value, pk = decode_cursor(cursor)
    if bound != binding:
        raise ValueError("the cursor of another list")
    return value, pk


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, OverflowError, InvalidKey) as error:
        raise InvalidListing("This cursor belongs to another list, or is none. Start again without it.") from error


def _column_value(column: str, value: Any) -> datetime | str | int | None:
    if column in _TIMES:
        if value is None:
            return None
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError("a time without a zone")
        # Converted here: at either end of the calendar the database adapter's own conversion overflows.
        return moment.astimezone(UTC)
    if column == "slug":
        if not isinstance(value, str):
            raise TypeError("not a slug")
        return check_key(value)
    return _integer(value)


def _integer(value: Any) -> int:
    if type(value) is not int or abs(value) >= _TOO_LARGE:
        raise ValueError("not an integer that a column can hold")
    return value


def _after(column: str, descending: bool, alias: str, value: datetime | str | int | None, pk: int) -> list[Q]:
    """Return the conditions of the rows after a position in the order, which ends with the row's number.

    The rows of each come before those of the next. A query for each follows the index from the position on, where one
    query for all would read every row before it. A skill without a time (written by another tool, for example) comes
    where the database sorts nulls, and that differs between databases.
    """
    operator = "lt" if descending else "gt"
    nulls_last = _nulls_last(descending, alias)
    if value is None:
        ties = Q(**{f"{column}__isnull": True, f"pk__{operator}": pk})
        return [ties] if nulls_last else [ties, Q(**{f"{column}__isnull": False})]
    after = [Q(**{column: value, f"pk__{operator}": pk}), Q(**{f"{column}__{operator}": value})]
    return [*after, Q(**{f"{column}__isnull": True})] if nulls_last and column in _TIMES else after


def _nulls_last(descending: bool, alias: str) -> bool:
    return descending == connections[alias].features.order_by_nulls_first
