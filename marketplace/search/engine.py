"""What the search asks of the full-text engine of a database, whichever that is.

An engine finds the skills in which every term begins some token, much downloaded ones first, and takes several such
searches as one. ``engines`` says which database has which.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from django.db.models import QuerySet

from marketplace.models import SkillEntry
from vskill.many_keys import rows_of

DOCUMENTS: Final = "marketplace_searchdocument"

Alternatives = Sequence[Sequence[str]]
"""Searches of which one has to find a skill: each has the terms of ``query_terms``, which are all looked for."""
Condition = tuple[list[str], list[str]]
"""Conditions of a statement, in SQL, which all have to hold, and their parameters."""


class Among(NamedTuple):
    """The skills with a ``value`` of a ``facet``: about what ``number`` these are, and a query for their ``keys``."""

    facet: str
    value: str
    number: int
    keys: QuerySet[Any]


class FoundSkills(NamedTuple):
    """The ``keys`` of skills, how many come first because they are ``named`` so, and ``rows`` of some by key."""

    keys: list[int]
    named: int
    rows: dict[int, tuple[Any, ...]]


class SearchEngine(ABC):
    """The engine of one database, for the searches of one request; call its methods on a database thread.

    ``most_among`` is among how many skills with a value an index is asked for them, rather than that others are met.
    """

    most_among: ClassVar[int]

    def __init__(self, alias: str) -> None:
        """Ask the database ``alias``."""
        self.alias = alias

    def matching(
        self, skills: QuerySet[SkillEntry], alternatives: Alternatives, *, in_names: bool = False, few: bool = False
    ) -> QuerySet[SkillEntry]:
        """Return the ``skills`` that one of ``alternatives`` finds, ``in_names`` by their names alone.

        Without any term, that is none. With ``few``, the caller says that there are few ``skills``: the documents of
        these are read, and not what the index has of a word. The query cannot be part of another one.
        """
        wanted = [terms for terms in alternatives if terms]
        if not wanted:
            return skills.none()
        # The join to the documents is made by a condition that is always true.
        joined = skills.filter(search_document__id__gte=0)
        if few:
            where, asked = self.unindexed(wanted, in_names)
            return joined.extra(where=where, params=asked)  # noqa: S610 - constants and parameters
        found = self.condition(wanted, in_names)
        if found is None:
            return skills.none()
        return joined.extra(tables=self.tables, where=found[0], params=found[1])  # noqa: S610 - constants and parameters

    @abstractmethod
    def expect(self, terms: Iterable[str]) -> None:
        """Know that ``terms`` are asked for next, so that whatever has to be known of them is read at once."""

    @property
    @abstractmethod
    def tables(self) -> list[str]:
        """Return the tables beside that of the documents that ``condition`` speaks of."""

    @abstractmethod
    def condition(self, wanted: Alternatives, in_names: bool) -> Condition | None:
        """Return what the index answers, ``None`` where it is known that nothing is found; no alternative is empty."""

    @abstractmethod
    def unindexed(self, wanted: Alternatives, in_names: bool) -> Condition:
        """Return the same without the index: what reads each document."""

    @abstractmethod
    def by_position(self, skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
        """Return skills that ``matching`` found in the order of their documents, much downloaded and new ones first.

        The engine reads in this order, so a slice costs no more than its rows.
        """

    @abstractmethod
    def below(self, skills: QuerySet[SkillEntry], position: int) -> QuerySet[SkillEntry]:
        """Return those of the skills that ``matching`` found whose documents have a lower number than ``position``."""

    def unasked(self, among: Sequence[Among]) -> Sequence[Among]:
        """Return which of the values, the rarest first, ``read`` does not ask for: some that it finds have others."""
        return among[1:] if among and among[0].number <= self.most_among else among

    @abstractmethod
    def nearest(
        self,
        alternatives: Alternatives,
        most: int,
        *,
        in_names: bool = False,
        among: Sequence[Among] = (),
        last: int | None = None,
    ) -> list[int]:
        """Return the keys of the first ``most`` skills in which the terms are, in the order of ``by_position``.

        That is whatever else is asked of them but to be ``among`` those with the first of these values, and to have no
        higher key than ``last``; ``in_names`` of the name alone.
        """

    def read(
        self,
        alternatives: Alternatives,
        most: int,
        skills: QuerySet[SkillEntry],
        columns: Sequence[str],
        *,
        names_first: bool = False,
        among: Sequence[Among] = (),
        last: int | None = None,
    ) -> FoundSkills:
        """Return what ``nearest`` does, and the ``columns`` of those that are among ``skills``; the first is the key.

        With ``names_first``, of more than ``most`` those come first that have the terms in their names. The rest is
        that of ``nearest``.
        """
        keys = self.nearest(alternatives, most, among=among, last=last)
        if not keys:
            return FoundSkills([], 0, {})
        named: list[int] = []
        if names_first and len(keys) == most:
            named = self.nearest(alternatives, most, in_names=True, among=among, last=last)
            keys = list(dict.fromkeys([*named, *keys]))[:most]
        rows = rows_of(skills, "pk", keys).values_list(*columns)
        return FoundSkills(keys, len(named), {row[0]: row for row in rows})

    def some(self, alternatives: Alternatives, most: int, *, among: Sequence[Among] = ()) -> list[int]:
        """Return the keys of any ``most`` skills in which the terms are; ``among`` is that of ``nearest``."""
        return self.nearest(alternatives, most, among=among)

    def is_frequent(self, alternatives: Alternatives) -> bool:  # noqa: ARG002 - for an engine that can know it
        """Return whether it is known without a search that some thousand skills have the terms."""
        return False

    @abstractmethod
    def met(self, skills: QuerySet[SkillEntry], alternatives: Alternatives) -> QuerySet[SkillEntry]:
        """Return those of the ``skills`` in which the terms are, as they are met in an order that is not the engine's.

        The caller says that many skills have the terms. Each alternative has a term.
        """

    @abstractmethod
    def fault(self) -> str:
        """Return how the index differs from what the documents say, empty where it does not."""

    def mend_filters(self) -> int:
        """Give documents what filters ask for, as their skills have it, and return how many had something else."""
        return 0

    @abstractmethod
    def rebuild(self) -> None:
        """Build the index from the documents, in the caller's transaction; publications wait for it."""
