"""The skills that a list holds: which ones pass its filters, how many, and what other filters would leave.

The counts that are kept answer for the list of all skills and for those that ``COUNTED_FACETS`` filter, or one of
``COUNTED_ALONE``. Other lists are counted to ``MOST_COUNTED``, and their facets among ``MOST_SAMPLED`` of their skills;
those of whoever sees more than is public both to ``MOST_COUNTED``, and searches to ``MOST_FOUND``. What is said then is
that there are at least so many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import astuple, replace
from functools import cached_property
from typing import Any, Final

from django.db.models import Count, Exists, F, OuterRef, QuerySet
from django.db.models.lookups import Exact, LessThanOrEqual

from marketplace.models import SkillEntry
from marketplace.models.derived import SkillFacet
from marketplace.skills.count_reads import KeptCounts, read_kept
from marketplace.skills.counts import COUNTED_ALONE, COUNTED_FACETS, TOTAL, Key, list_of
from marketplace.skills.filters import FacetValue, HowMany, SkillFilters
from marketplace.skills.handles import present_handle
from marketplace.skills.many_keys import rows_of
from marketplace.skills.search import COLUMNS, Hits, Row
from marketplace.skills.unindexed import Unindexed
from marketplace.skills.visibility import listed_skills, parts_of_lists, sees_more
from vskill.environments import WorkerEnv
from vskill.kv.codec import is_storable, prefix_end

MOST_COUNTED: Final = 1000
MOST_SAMPLED: Final = 200
MOST_FOUND: Final = 100
FACET_VALUES: Final = 20
# A filter that leaves so few skills is asked first, and they are sorted; others are asked of each skill in the order of
# the list.
_FEW: Final = 1000
# What is read in no order begins with the filter that leaves fewest: by the others, most skills would be read in vain.
_FEWER_THAN_ALL: Final = 20_000
# So many times these are sorted as well, where walking the order would meet a page of the list only behind more.
_MORE_SORTED: Final = 5
_OF_A_PAGE: Final = 25
# With more filters the values beside a chosen one are not looked for, by two statements each.
_MOST_FILTERS: Final = 3
_COLUMN_FACETS: Final = {"verdict": "verdict", "publisher": "publisher_handle", "license": "license"}
_ROW_FACETS: Final = {"tag": SkillFacet.TAG, "capability": SkillFacet.CAPABILITY, "agent": SkillFacet.AGENT}


class FilteredSkills:
    """The listed skills of an environment that pass ``filters``; call its methods on a database thread."""

    def __init__(
        self,
        env: WorkerEnv,
        filters: SkillFilters,
        *,
        last: int | None = None,
        facets: Collection[str] = (),
        best_first: bool = True,
    ) -> None:
        """Begin with nothing read but who the publisher is.

        ``last`` is the key of the last skill that is looked at, by default any, and ``facets`` are those that ``facet``
        is called for. ``best_first`` is that of ``Hits``.
        """
        self.env = env
        self._last = last
        self._asked = tuple(facets)
        self._best_first = best_first
        self._filter_by(filters)
        # A count says that it is a handle; without one it may be the short or the former name of a publisher.
        if filters.publisher and not self.kept_count("publisher"):
            self._filter_by(replace(filters, publisher=present_handle(env, filters.publisher)))

    def _filter_by(self, filters: SkillFilters) -> None:
        self.filters = filters
        self._facets = {name: value for name in (*_COLUMN_FACETS, *_ROW_FACETS) if (value := getattr(filters, name))}
        # Each read follows the filters.
        self.__dict__.pop("_kept", None)

    @property
    def _storable(self) -> bool:
        # No row can hold another value, and PostgreSQL raises an error for it in a query.
        return all(is_storable(value) for value in astuple(self.filters))

    @cached_property
    def _kept(self) -> KeptCounts:
        """Read what is kept of all that this list can be asked for, by one statement."""
        if self.sees_more or not self._storable:
            return KeptCounts({}, {})
        keys = [("", name, value) for name, value in self._facets.items()] + [("", TOTAL, "")] * bool(self._facets)
        facets = [(list_of(self._others(name)), name) for name in self._asked if self._is_kept(name)]
        # Those of all skills, where the list turns out to be long.
        alone = [name for name in self._asked if self._may_be_uncounted(name)]
        facets += [("", name) for name in alone]
        totals = [_total_of(self._facets) if self._only_kept(self._facets) else None]
        totals += [_total_of(self._others(name)) for name in alone]
        keys += [key for key in totals if key is not None]
        return read_kept(self.env, list(dict.fromkeys(keys)), list(dict.fromkeys(facets)), limit=FACET_VALUES)

    def kept_count(self, name: str) -> int | None:
        """Return how many skills the chosen value of a facet alone leaves, ``None`` where no count of that is kept."""
        return self._kept.counts.get(("", name, self._facets.get(name, "")))

    @cached_property
    def _known(self) -> Mapping[str, int]:
        """Return how many skills each facet alone leaves, to ``_FEW`` and one where no count is kept."""
        kept = {name: self.kept_count(name) for name in self._facets}
        return {
            name: self._having(name)[: _FEW + 1].count() if found is None else found for name, found in kept.items()
        }

    def parts(self) -> list[QuerySet[SkillEntry]]:
        """Return the skills as unordered queries, each of which follows the index of an order."""
        parts = [self._passing(part=one, most=self._most_sorted()) for one in parts_of_lists()]
        return self.hits.skills(parts) if self.filters.query else parts

    @cached_property
    def sees_more(self) -> bool:
        """Return whether whoever asks is shown a skill that is not public."""
        # The counts that are kept are those of public skills.
        return sees_more(self.env)

    @cached_property
    def hits(self) -> Hits:
        """Return what the query finds."""
        given: dict[str, Any] = {"namespace": self.env.name, "best_first": self._best_first}
        return Hits(self._passing(), self.filters.query, few=self._are_few(), **given)

    def _rarest(self, without: str = "") -> str:
        names = [name for name in self._facets if name != without]
        return min(names, key=self._known.__getitem__, default="")

    def _are_few(self, without: str = "", *, most: int | None = None) -> bool:
        """Return whether one of the facets leaves few skills, at most ``most``, by default ``_FEW``."""
        rarest = self._rarest(without) if self._storable else ""
        return rarest != "" and self._known[rarest] <= (_FEW if most is None else most)

    def _most_sorted(self) -> int:
        """Return how many skills of the rarest filter are rather sorted than met in the order of the list."""
        if self.filters.query or not self._storable or not self._facets:
            return _FEW
        every, walked = self._kept.counts.get(("", TOTAL, ""), 0), float(_OF_A_PAGE)
        for known in self._known.values():
            walked *= every / max(known, 1)
        return max(_FEW, min(int(walked), _FEW * _MORE_SORTED))

    def _passing(
        self, *, without: str = "", part: tuple[str, ...] = (), most: int | None = None
    ) -> QuerySet[SkillEntry]:
        """Return what the filters but the query leave; ``without`` leaves out that of a facet as well.

        ``part`` is that of ``listed_skills``, and ``most`` that of ``_are_few``.
        """
        skills: QuerySet[SkillEntry] = SkillEntry.objects.using(self.env.database)
        if not self._storable:
            return skills.none()
        names = [name for name in self._facets if name != without]
        if self._are_few(without, most=most):
            rarest = self._rarest(without)
            # Without the environment, so that no index of an order is followed past all skills of it.
            skills = listed_skills(skills.filter(pk__in=self._having(rarest).values(_id_of(rarest))), part)
            names.remove(rarest)
        else:
            skills = listed_skills(skills.filter(namespace=self.env.name), part)
        for name in names:
            skills = skills.filter(self._condition(name))
        if self._last is not None:
            skills = skills.filter(LessThanOrEqual(Unindexed(F("pk")), self._last))
        if prefix := self.filters.prefix:
            skills = skills.filter(slug__gte=prefix)
            if (end := prefix_end(prefix)) is not None:
                skills = skills.filter(slug__lt=end)
        return skills

    @cached_property
    def _sample(self) -> list[Row]:
        return self._rows()

    def _rows(self, *, without: str = "") -> list[Row]:
        """Return the keys and columns of skills, one more than are counted."""
        if self.filters.query:
            others = self._passing(without=without)
            hits = self.hits.among(others, few=self._are_few(without)) if without else self.hits
            return hits.first_rows(self._most + 1)
        passing = self._passing(without=without, most=_FEWER_THAN_ALL)
        return list(passing.values_list("pk", *COLUMNS)[: self._most + 1])

    @property
    def _most(self) -> int:
        if self.filters.query:
            return MOST_FOUND
        return MOST_COUNTED if self.sees_more else MOST_SAMPLED

    def how_many(self) -> HowMany:
        """Return how many skills there are."""
        if (kept := self._kept_total(self._facets)) is not None:
            return HowMany(kept)
        found, most = len(self._sample), self._most
        if found > most and not self.filters.query:
            most = MOST_COUNTED
            found = self._passing(most=_FEWER_THAN_ALL)[: most + 1].count()
        return HowMany(min(found, most), found > most)

    def facet(self, name: str) -> list[FacetValue]:
        """Return the most frequent values of a facet, at most ``FACET_VALUES``, as the other filters leave them.

        Where those leave more skills than can be counted, values and counts are those of so many of them, or of one of
        ``COUNTED_ALONE`` the values of all skills without counts. Beside a chosen value none is looked for where more
        than ``_MOST_FILTERS`` are chosen, unless the counts are kept.
        """
        others = self._others(name)
        if 0 in map(self.kept_count, others):
            return []
        if self._is_kept(name):
            return [FacetValue(*row) for row in self._kept.highest[list_of(others), name]]
        if self._may_be_uncounted(name) and (self._kept_total(others) or 0) > MOST_FOUND:
            return [FacetValue(value, None) for value, _count in self._kept.highest["", name]]
        if name in self._facets and len(self._facets) > _MOST_FILTERS:
            return []
        rows = self._sample if name not in self._facets else self._rows(without=name)
        among = rows[: self._most]
        if name in _COLUMN_FACETS:
            place = 1 + COLUMNS.index(_COLUMN_FACETS[name])
            counts = Counter(str(value) for row in among if (value := row[place]))
        elif rows is self._sample:
            counts = self._held_by_sample[name]
        else:
            counts = self._held_by(among, [name])[name]
        most = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:FACET_VALUES]
        return [FacetValue(value, count, len(rows) > self._most) for value, count in most]

    @cached_property
    def _held_by_sample(self) -> Mapping[str, Counter[str]]:
        """Count the values of every facet that is asked for and of which a skill has several, by one statement."""
        return self._held_by(self._sample[: self._most], [name for name in self._asked if name in _ROW_FACETS])

    def _held_by(self, among: list[Row], names: Collection[str]) -> Mapping[str, Counter[str]]:
        # By their skills alone: SQLite would follow the index of the values past those of all skills.
        held = rows_of(SkillFacet.objects.using(self.env.database), "skill_id", [row[0] for row in among])
        kinds = {_ROW_FACETS[name]: name for name in names}
        found: dict[str, Counter[str]] = {name: Counter() for name in names}
        rows = held.filter(kind__in=kinds).order_by()
        for kind, value, number in rows.values_list("kind", "value").annotate(Count("pk")):
            found[kinds[kind]][value] = number
        return found

    def _others(self, name: str) -> dict[str, str]:
        return {other: value for other, value in self._facets.items() if other != name}

    def _is_kept(self, name: str) -> bool:
        """Return whether the counts of a facet's values are kept for the list that the other facets filter."""
        others = self._others(name)
        return self._only_kept(others) and (not others or {name, *others} <= set(COUNTED_FACETS))

    def _may_be_uncounted(self, name: str) -> bool:
        """Return whether a facet's values are not counted where the list is long: no other count reads its skills."""
        others = self._others(name)
        return name in COUNTED_ALONE and set(others) <= set(COUNTED_FACETS) and self._only_kept(others)

    def _only_kept(self, facets: Mapping[str, str]) -> bool:
        """Return whether the length of the list that these facets filter is kept."""
        others = self.filters.query or self.filters.prefix
        alone = len(facets) == 1 and set(facets) <= set(COUNTED_ALONE)
        counted = alone or set(facets) <= set(COUNTED_FACETS)
        return counted and self._storable and not others and not self.sees_more

    def _kept_total(self, facets: Mapping[str, str]) -> int | None:
        """Return the length of the list that these facets filter, ``None`` where it is not kept."""
        return self._kept.counts[_total_of(facets)] if self._only_kept(facets) else None

    def _condition(self, name: str) -> Any:
        if name in _COLUMN_FACETS:
            return Exact(Unindexed(F(_COLUMN_FACETS[name])), self._facets[name])
        return Exists(self._having(name).filter(skill_id=OuterRef("pk")))

    def _having(self, name: str) -> QuerySet[Any]:
        """Return the rows with the chosen value of a facet: those of skills, or of ``SkillFacet``."""
        if name in _ROW_FACETS:
            return self._facet_rows(name).filter(value=self._facets[name])
        rows: QuerySet[Any] = SkillEntry.objects.using(self.env.database).filter(namespace=self.env.name)
        return rows.filter(**{_COLUMN_FACETS[name]: self._facets[name]})

    def _facet_rows(self, name: str) -> QuerySet[SkillFacet]:
        rows = SkillFacet.objects.using(self.env.database)
        return rows.filter(namespace=self.env.name, kind=_ROW_FACETS[name])


def _total_of(facets: Mapping[str, str]) -> Key:
    """Return the count that is the length of the list that these facets filter."""
    if not facets:
        return ("", TOTAL, "")
    *others, (name, value) = facets.items()
    return (list_of(dict(others)), name, value)


def _id_of(name: str) -> str:
    return "skill_id" if name in _ROW_FACETS else "pk"
