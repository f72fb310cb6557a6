"""The skills that a list holds: which ones pass its filters, how many, and what other filters would leave.

The counts that are kept answer for most lists. Where only the length of one is kept, a short list is read to count the
values of a facet, and beside a long one stand those of a longer list, without counts. Other lists are counted to
``MOST_COUNTED``, and their facets among ``MOST_SAMPLED`` of their skills; those of whoever sees more than is public to
``MOST_COUNTED`` both, and searches to ``MOST_FOUND``. What is said then is that there are at least so many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import astuple, replace
from functools import cached_property
from typing import Any, Final

from django.db.models import Count, F, OuterRef, QuerySet
from django.db.models.lookups import Exact, LessThanOrEqual

from marketplace.models import SkillEntry
from marketplace.models.derived import SkillFacet
from marketplace.search.engine import Among
from marketplace.search.engines import engine_of
from marketplace.skills.filters import FacetValue, HowMany, SkillFilters
from marketplace.skills.handles import present_handle
from marketplace.skills.kept_list import FACET_VALUES, KeptList
from marketplace.skills.nearest_skills import COLUMNS, Row
from marketplace.skills.search import Hits
from marketplace.skills.visibility import listed_skills, parts_of_lists, sees_more
from vskill.environments import WorkerEnv
from vskill.kv.codec import is_storable, prefix_end
from vskill.many_keys import rows_of
from vskill.unindexed import AskedOfEach, InRead, Unindexed

MOST_COUNTED: Final = 1000
MOST_SAMPLED: Final = 200
MOST_FOUND: Final = 100
# A filter that leaves so few skills is asked first, and they are sorted; others are asked of each skill in the order of
# the list.
_FEW: Final = 1000
# What is read in no order begins with the filter that leaves fewest: by the others, most skills would be read in vain.
_FEWER_THAN_ALL: Final = 20_000
# So many times these are sorted as well, where a page of the list is met only behind more than are walked in that time.
_MORE_SORTED: Final = 5
_WALKED_PER_SORTED: Final = 4
# So many rows with a value are read in the time in which one skill of those that are walked is looked up among them.
_READ_PER_LOOKED_UP: Final = 5
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
        columns: Collection[str] = (),
        best_first: bool = True,
    ) -> None:
        """Begin with nothing read but who the publisher is.

        ``last`` is the key of the last skill that is looked at, by default any, and ``facets`` are those that ``facet``
        is called for. ``columns`` and ``best_first`` are those of ``Hits``.
        """
        self.env = env
        self._last, self._asked = last, tuple(facets)
        self._of_page: dict[str, Any] = {"best_first": best_first, "columns": columns}
        self._filter_by(filters)
        # A count says that it is a handle; without one it may be the short or the former name of a publisher.
        if filters.publisher and not self.kept_count("publisher"):
            self._filter_by(replace(filters, publisher=present_handle(env, filters.publisher)))

    def _filter_by(self, filters: SkillFilters) -> None:
        self.filters = filters
        self._facets = {name: value for name in (*_COLUMN_FACETS, *_ROW_FACETS) if (value := getattr(filters, name))}
        alone = not self.filters.query and not self.filters.prefix
        is_kept = self._storable and not self.sees_more
        self._kept = KeptList(self.env, self._facets, self._asked, is_kept=is_kept, alone=alone)

    @property
    def _storable(self) -> bool:
        # No row can hold another value, and PostgreSQL raises an error for it in a query.
        return all(is_storable(value) for value in astuple(self.filters))

    def kept_count(self, name: str) -> int | None:
        """Return how many skills the chosen value of a facet alone leaves, ``None`` where no count of that is kept."""
        return self._kept.count(name)

    @cached_property
    def _known(self) -> Mapping[str, int]:
        """Return how many skills each facet alone leaves, to ``_FEW`` and one where no count is kept."""
        kept = {name: self.kept_count(name) for name in self._facets}
        return {
            name: self._having(name)[: _FEW + 1].count() if found is None else found for name, found in kept.items()
        }

    def parts(self) -> list[QuerySet[SkillEntry]]:
        """Return the skills as unordered queries, each of which follows the index of an order."""
        walked = self._walked()
        most = max(_FEW, min(walked // _WALKED_PER_SORTED, _FEW * _MORE_SORTED))
        parts = [self._passing(part=one, most=most, walked=walked) for one in parts_of_lists()]
        return self.hits.skills(parts) if self.filters.query else parts

    @property
    def meets_others(self) -> bool:
        """Return whether skills that do not pass are met in the order of a list."""
        return bool(self._facets or self.filters.query)

    @cached_property
    def sees_more(self) -> bool:
        """Return whether whoever asks is shown a skill that is not public."""
        # The counts that are kept are those of public skills.
        return sees_more(self.env)

    @cached_property
    def hits(self) -> Hits:
        """Return what the query finds."""
        given = {"namespace": self.env.name, "last": self._last, **self._of_page, **self._of_hits()}
        return Hits(self._passing(looked_up=True), self.filters.query, **given)

    def _of_hits(self, without: str = "") -> dict[str, Any]:
        """Return what ``Hits`` has to know of the skills that the filters leave."""
        names = self._rarest_first(without)
        if not names or self._known[names[0]] <= _FEW:
            return {"few": bool(names)}
        keys = {name: self._having(name).values(_id_of(name)) for name in names}
        among = [Among(name, self._facets[name], self._known[name], keys[name]) for name in names]
        unasked = engine_of(self.env.database).unasked(among)
        return {"among": among, "share": self._share([one.facet for one in unasked])}

    def _share(self, names: Collection[str]) -> float:
        """Return about which part of all skills these filters leave, 1 where that is not known."""
        every, share = self._kept.every, 1.0
        for name in names if every else ():
            share *= max(self._known[name], 1) / every
        return share

    def _rarest_first(self, without: str = "") -> list[str]:
        names = [name for name in self._facets if name != without] if self._storable else []
        return sorted(names, key=lambda name: self._known[name])

    def _are_few(self, without: str = "", *, most: int | None = None) -> bool:
        """Return whether one of the facets leaves few skills, at most ``most``, by default ``_FEW``."""
        names = self._rarest_first(without)
        return bool(names) and self._known[names[0]] <= (_FEW if most is None else most)

    def _walked(self) -> int:
        """Return how many skills are met in the order of the list until a page is full, 0 where that is not known."""
        if not self._facets or not self._storable or self.filters.query:
            return 0
        if (total := self._kept.total()) is not None:
            return int(_OF_A_PAGE * self._kept.every / max(total, 1))
        return int(_OF_A_PAGE / self._share(self._facets)) if self._kept.every else 0

    def _passing(
        self,
        *,
        without: str = "",
        part: tuple[str, ...] = (),
        most: int | None = None,
        walked: int = 0,
        looked_up: bool = False,
    ) -> QuerySet[SkillEntry]:
        """Return what the filters but the query leave; ``without`` leaves out that of a facet as well.

        ``part`` is that of ``listed_skills``, ``most`` that of ``_are_few``, ``walked`` what ``_walked`` returns, and
        ``looked_up`` says that they are looked up by their keys.
        """
        skills: QuerySet[SkillEntry] = SkillEntry.objects.using(self.env.database)
        if not self._storable:
            return skills.none()
        names = [name for name in self._facets if name != without]
        if self._are_few(without, most=most):
            rarest = self._rarest_first(without)[0]
            # Without the environment, so that no index of an order is followed past all skills of it.
            skills = listed_skills(skills.filter(pk__in=self._having(rarest).values(_id_of(rarest))), part)
            names.remove(rarest)
        elif looked_up:
            # SQLite would follow an index past all skills.
            skills = listed_skills(skills.filter(Exact(Unindexed(F("namespace")), self.env.name)), part)
        else:
            skills = listed_skills(skills.filter(namespace=self.env.name), part)
        read = self._read_while_walked(names, walked)
        for name in names:
            if name == read:
                skills = skills.filter(InRead(F("pk"), self._having(name).values("skill_id")))
            else:
                skills = skills.filter(self._condition(name))
        if self._last is not None:
            skills = skills.filter(LessThanOrEqual(Unindexed(F("pk")), self._last))
        if prefix := self.filters.prefix:
            skills = skills.filter(slug__gte=prefix)
            if (end := prefix_end(prefix)) is not None:
                skills = skills.filter(slug__lt=end)
        return skills

    @cached_property
    def _read(self) -> list[Row]:
        """Read as many skills as are counted, and one more."""
        return self._rows(MOST_FOUND if self.filters.query else MOST_COUNTED)

    def _rows(self, most: int, *, without: str = "") -> list[Row]:
        """Return the keys and columns of skills, one more than ``most``."""
        if self.filters.query:
            others = self._passing(without=without, looked_up=True)
            hits = self.hits.of_others(others, last=self._last, **self._of_hits(without)) if without else self.hits
            return hits.first_rows(most + 1)
        passing = self._passing(without=without, most=_FEWER_THAN_ALL)
        return list(passing.values_list("pk", *COLUMNS)[: most + 1])

    @property
    def _most(self) -> int:
        """Return among how many skills the values of facets are counted."""
        if self.filters.query:
            return MOST_FOUND
        return MOST_COUNTED if self.sees_more else MOST_SAMPLED

    def how_many(self) -> HowMany:
        """Return how many skills there are."""
        if (kept := self._kept.total()) is not None:
            return HowMany(kept)
        found, most = len(self._read), MOST_FOUND if self.filters.query else MOST_COUNTED
        return HowMany(min(found, most), found > most)

    def facet(self, name: str) -> list[FacetValue]:
        """Return the most frequent values of a facet, at most ``FACET_VALUES``, as the other filters leave them.

        Where those leave more skills than are counted, values and counts are those of so many of them, or the values
        those of a list that one of them filters, without counts. Beside a chosen value none is looked for where more
        than ``_MOST_FILTERS`` are chosen, unless the counts are kept.
        """
        if 0 in (self.kept_count(other) for other in self._facets if other != name):
            return []
        if (values := self._kept.values(name)) is not None:
            return [FacetValue(*one) for one in values]
        if (self._kept.total(without=name) or 0) > MOST_FOUND:
            return [FacetValue(value, None) for value in self._kept.values_of_longer(name)]
        if name in self._facets and len(self._facets) > _MOST_FILTERS:
            return []
        rows = self._read if name not in self._facets else self._rows(self._most, without=name)
        among = rows[: self._most]
        if name in _COLUMN_FACETS:
            place = 1 + COLUMNS.index(_COLUMN_FACETS[name])
            counts = Counter(str(value) for row in among if (value := row[place]))
        elif rows is self._read:
            counts = self._held_by_read[name]
        else:
            counts = self._held_by(among, [name])[name]
        most = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:FACET_VALUES]
        return [FacetValue(value, count, len(rows) > self._most) for value, count in most]

    @cached_property
    def _held_by_read(self) -> Mapping[str, Counter[str]]:
        """Count the values of every facet that is asked for and of which a skill has several, by one statement."""
        return self._held_by(self._read[: self._most], [name for name in self._asked if name in _ROW_FACETS])

    def _held_by(self, among: list[Row], names: Collection[str]) -> Mapping[str, Counter[str]]:
        # By their skills alone: SQLite would follow the index of the values past those of all skills.
        held = rows_of(SkillFacet.objects.using(self.env.database), "skill_id", [row[0] for row in among])
        kinds = {_ROW_FACETS[name]: name for name in names}
        found: dict[str, Counter[str]] = {name: Counter() for name in names}
        rows = held.filter(kind__in=kinds).order_by()
        for kind, value, number in rows.values_list("kind", "value").annotate(Count("pk")):
            found[kinds[kind]][value] = number
        return found

    def _read_while_walked(self, names: Collection[str], walked: int) -> str:
        """Return the filter whose skills are rather read at once than looked up one by one, empty where none is."""
        # The others are looked up for what passes it alone.
        rarest = min((one for one in names if one in _ROW_FACETS), key=self._known.__getitem__, default="")
        return rarest if rarest and self._known[rarest] <= walked * _READ_PER_LOOKED_UP else ""

    def _condition(self, name: str) -> Any:
        if name in _COLUMN_FACETS:
            return Exact(Unindexed(F(_COLUMN_FACETS[name])), self._facets[name])
        return AskedOfEach(self._having(name).filter(skill_id=OuterRef("pk")))

    def _having(self, name: str) -> QuerySet[Any]:
        """Return the rows with the chosen value of a facet: those of skills, or of ``SkillFacet``."""
        if name in _ROW_FACETS:
            return self._facet_rows(name).filter(value=self._facets[name])
        rows: QuerySet[Any] = SkillEntry.objects.using(self.env.database).filter(namespace=self.env.name)
        return rows.filter(**{_COLUMN_FACETS[name]: self._facets[name]})

    def _facet_rows(self, name: str) -> QuerySet[SkillFacet]:
        rows = SkillFacet.objects.using(self.env.database)
        return rows.filter(namespace=self.env.name, kind=_ROW_FACETS[name])


def _id_of(name: str) -> str:
    return "skill_id" if name in _ROW_FACETS else "pk"
