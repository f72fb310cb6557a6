"""Read the skills in which terms are, nearest first: the index finds documents, and then the skills are looked up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import isqrt
from typing import Any, Final

from django.db.models import QuerySet

from marketplace.models import SkillEntry
from marketplace.search.engine import Alternatives, Among, FoundSkills, SearchEngine
from marketplace.search.loosening import Asked
from marketplace.search.scoring import SCORED_FIELDS
from vskill.many_keys import rows_of

# What the facets of a list are counted by: columns of a skill.
COLUMNS: Final = ("verdict", "publisher_handle", "license")
# What is read of a skill, so that what is counted can be scored without another statement.
READ: Final = ("pk", *COLUMNS, "slug", "downloads", *(f"search_document__{name}" for name in SCORED_FIELDS))
NAME: Final = READ.index("search_document__name")
# Where fewer of the nearest documents than one of sixteen pass, the engine and the filters are asked together.
_MOST_LOOKED_UP: Final = 2000
# So many skills with one term are looked up to say whether any passes, and then as many are looked for.
_OF_A_TERM: Final = 25
_LOOKED_AT: Final = 200

Row = tuple[Any, ...]
"""The key of a skill, its ``COLUMNS``, what it is scored by, and the other columns that are wanted of it."""


class NearestSkills:
    """The ``skills`` in which the terms of a search are; call its methods on a database thread."""

    def __init__(
        self,
        skills: QuerySet[SkillEntry],
        engine: SearchEngine,
        *,
        few: bool = False,
        among: Sequence[Among] = (),
        share: float = 1,
        last: int | None = None,
        columns: Collection[str] = (),
        same: NearestSkills | None = None,
    ) -> None:
        """Begin with nothing read.

        ``columns`` are read of each skill that is found, so that no other statement is needed for them. No index is
        followed for the ``skills``. ``few`` says that these are few, whatever the words are. ``among`` says what all of
        them have, the rarest first, ``share`` is about which part they are of those that the engine finds, and ``last``
        is the highest key. What ``same`` has read of documents is not read again.
        """
        self._skills = skills
        self._engine = engine
        self._columns = (*READ, *(name for name in columns if name not in READ))
        self._few = few
        self._among = among
        self._share = min(share, 1)
        # Those that are published meanwhile take no place of others.
        self._asked: dict[str, Any] = {"among": among, "last": last}
        # What was read of documents, with how many were wanted, and of their skills.
        self._documents: dict[tuple[Asked, bool], tuple[int, list[int]]] = {}
        if same is not None and same._among == among:
            self._documents = same._documents
        self._looked_up: dict[int, Row | None] = {}

    def expect(self, terms: Iterable[str]) -> None:
        """Know that ``terms`` are asked for next; few skills are looked into themselves."""
        if not self._few:
            self._engine.expect(terms)

    def rows(self, asked: Asked, most: int) -> list[Row]:
        """Return at most ``most`` of them, in the engine's order."""
        rows = self._nearest(asked, most)
        return self._matched_rows(asked, most) if rows is None else rows

    def names_first(self, asked: Asked, most: int) -> tuple[list[Row], int]:
        """Return at most ``most`` of them, those that have the terms in their names first, and how many these are."""
        if self._few:
            names, rest = self._matched_rows(asked, most, in_names=True), None
        else:
            names, rest = self._names_first(asked, most)
        if not names or len(names) == most:
            return names, len(names)
        if rest is None:
            rest = self.rows(asked, most)
        held = {row[0] for row in names}
        return [*names, *(row for row in rest if row[0] not in held)][:most], len(names)

    def _names_first(self, asked: Asked, most: int) -> tuple[list[Row], list[Row] | None]:
        """Return those that have the terms in their names and others; ``None`` where too few of these were read."""
        some = self._ahead(most)
        found = self._read(asked.alternatives, some, names_first=True)
        if not found.named:
            self._documents[asked, False] = (some, found.keys)
        if found.named or len(found.keys) == some:
            self._documents[asked, True] = (some, found.keys[: found.named])
        elif len(self.look_up(found.keys)) < most:
            # All of them are scored, named or not.
            return [], None
        names = self._nearest(asked, most, in_names=True)
        if names is None:
            names = self._matched_rows(asked, most, in_names=True)
        rest = self.look_up(found.keys[found.named :])
        return names, rest if len(names) + len(rest) >= most or len(found.keys) < some else None

    def _read(self, alternatives: Alternatives, most: int, *, names_first: bool = False) -> FoundSkills:
        """Return what the engine finds, whose skills are looked up with it."""
        asked = {**self._asked, "names_first": names_first}
        found = self._engine.read(alternatives, most, self._skills, self._columns, **asked)
        self._looked_up |= {pk: found.rows.get(pk) for pk in found.keys}
        return found

    def _documents_of(self, alternatives: Alternatives, most: int, *, in_names: bool) -> list[int]:
        if in_names:
            return self._engine.nearest(alternatives, most, in_names=True, **self._asked)
        # PostgreSQL looks up the skills by the same statement.
        return self._read(alternatives, most).keys

    def _matched_rows(self, asked: Asked, most: int, *, in_names: bool = False) -> list[Row]:
        rows: list[Row] = list(self.matched(asked, in_names=in_names).values_list(*self._columns)[:most])
        self._looked_up |= {row[0]: row for row in rows}
        return rows

    def matched(self, asked: Asked, *, in_names: bool = False) -> QuerySet[SkillEntry]:
        """Return all of them as a query in the engine's order."""
        found = self._engine.matching(self._skills, asked.alternatives, in_names=in_names, few=self._few)
        return self._engine.by_position(found)

    def having_some(self, term: str, *, in_names: bool = False) -> bool:
        """Return whether a term finds any of the skills, or the name of one."""
        if not self._few:
            near = self._documents_of([[term]], _OF_A_TERM, in_names=in_names)
            if self.passes_any(near) or len(near) < _OF_A_TERM:
                return self.passes_any(near)
        matched = self._engine.matching(self._skills, [[term]], in_names=in_names, few=self._few)
        # Asked for one alone, PostgreSQL reads documents until it meets it.
        return bool(self._engine.by_position(matched).values_list("pk", flat=True)[:_LOOKED_AT])

    def some(self, asked: Asked, most: int) -> list[int]:
        """Return the keys of any ``most`` skills in which the terms are; few skills pass, of others not all do."""
        if self._few:
            return list(self.matched(asked).values_list("pk", flat=True)[:most])
        return self._engine.some(asked.alternatives, most, among=self._among)

    def are_many(self, asked: Asked) -> bool:
        """Return whether it is known without a search that far too many are found to name each of them."""
        every = not self._few and not self._among and self._share == 1
        return every and self._engine.is_frequent(asked.alternatives)

    def passes_any(self, keys: Sequence[int]) -> bool:
        """Return whether one of the skills has one of the ``keys``; some of them are mostly enough."""
        parts = (keys[:_OF_A_TERM], keys[_OF_A_TERM:])
        return any(self.look_up(part) for part in parts if part)

    def look_up(self, keys: Sequence[int]) -> list[Row]:
        """Return the skills that have one of the ``keys``, in their order."""
        if new := [pk for pk in dict.fromkeys(keys) if pk not in self._looked_up]:
            passing = {row[0]: row for row in rows_of(self._skills, "pk", new).values_list(*self._columns)}
            self._looked_up |= {pk: passing.get(pk) for pk in new}
        return [row for pk in keys if (row := self._looked_up[pk]) is not None]

    def looked_up(self, keys: Iterable[int], columns: Collection[str]) -> dict[int, SkillEntry]:
        """Return by their keys the skills that were looked up already, with ``columns``, all of which were read.

        They are as they were then.
        """
        # As the model has them, which makes an entry of values in this order.
        fields = [one.attname for one in SkillEntry._meta.concrete_fields if one.primary_key or one.name in columns]
        places = [self._columns.index(name if name != "id" else "pk") for name in fields]
        rows = {pk: row for pk in keys if (row := self._looked_up.get(pk)) is not None}
        alias = self._skills.db
        return {pk: SkillEntry.from_db(alias, fields, [row[place] for place in places]) for pk, row in rows.items()}

    def _nearest(self, asked: Asked, most: int, *, in_names: bool = False) -> list[Row] | None:
        """Return the first rows by the nearest documents, ``None`` where there are too few of these to tell."""
        some = self._ahead(most)
        while True:
            near = self._near(asked, some, in_names=in_names)
            if near is None:
                return None
            rows = self.look_up(near)[:most]
            if len(rows) == most or len(near) < some:
                return rows
            # As many as hold enough, if as large a part of them passes.
            some = some * (most + most // 4) // max(1, len(rows))
            if some > _MOST_LOOKED_UP:
                return None

    def _ahead(self, most: int) -> int:
        """Return how many documents are read for so many skills: some are left out by what else these pass.

        Of those that pass a share on the average, twice the deviation is added.
        """
        more = most // 16 if self._share == 1 else 2 * isqrt(most)
        return min(int((most + more) / self._share), _MOST_LOOKED_UP)

    def _near(self, asked: Asked, some: int, *, in_names: bool) -> list[int] | None:
        """Return the keys of the nearest documents; ``None`` where few skills are looked into themselves."""
        if self._few:
            return None
        limit, found = self._documents.get((asked, in_names), (0, []))
        if some > limit:
            limit, found = some, self._documents_of(asked.alternatives, some, in_names=in_names)
            self._documents[asked, in_names] = (limit, found)
        return found[:some]
