"""Search on SQLite: FTS5 over the documents, with an index of beginnings; triggers keep it in step with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from django.db import DatabaseError, connections, transaction
from django.db.models import QuerySet

from marketplace.models import SkillEntry
from marketplace.search.documents import FIELDS
from marketplace.search.engine import DOCUMENTS, Alternatives, Condition, SearchEngine

_FTS: Final = "marketplace_searchfts"


class SqliteEngine(SearchEngine):
    """FTS5."""

    def expect(self, terms: Iterable[str]) -> None:
        """Do nothing: FTS5 has an index of beginnings."""

    @property
    def tables(self) -> list[str]:
        """Return the table of FTS5."""
        return [_FTS]

    def condition(self, wanted: Alternatives, in_names: bool) -> Condition:
        """Return a match of FTS5, and the join of what it finds to the documents."""
        asked = " OR ".join(_all_of(terms) for terms in wanted)
        # With the sign, the index is read once and skills are looked up. Without it, SQLite may ask the index for each
        # skill, as it does where no order is wanted.
        where = [f"{_FTS} MATCH %s", f"{DOCUMENTS}.id = +{_FTS}.rowid"]
        return where, [f"name : ({asked})" if in_names else asked]

    def unindexed(self, wanted: Alternatives, in_names: bool) -> Condition:
        """Return a look into the text of each field."""
        fields = ("name",) if in_names else FIELDS
        one = " OR ".join(f"instr(' ' || {DOCUMENTS}.{name}, %s)" for name in fields)
        condition = " OR ".join(" AND ".join([f"({one})"] * len(terms)) for terms in wanted)
        return [f"({condition})"], [f" {term}" for terms in wanted for term in terms for _field in fields]

    def by_position(self, skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
        """Follow the numbers in the index, as FTS5 reads it."""
        if _FTS in skills.query.extra_tables:
            return skills.extra(order_by=[f"-{_FTS}.rowid"])
        return skills.order_by("-search_document__id")

    def below(self, skills: QuerySet[SkillEntry], position: int) -> QuerySet[SkillEntry]:
        """Begin in the index, where it is read."""
        if _FTS in skills.query.extra_tables:
            return skills.extra(where=[f"{_FTS}.rowid < %s"], params=[position])  # noqa: S610 - constants and a parameter
        return skills.filter(search_document__id__lt=position)

    def nearest(
        self, alternatives: Alternatives, most: int, *, in_names: bool = False, whole_words: bool = False
    ) -> None:
        """Return nothing, ``in_names`` or ``whole_words`` or not: FTS5 reads in the order of its numbers by itself."""

    def any_of(self, skills: QuerySet[SkillEntry]) -> bool:
        """Ask for one row: FTS5 ends at the first."""
        return skills.exists()

    def fault(self) -> str:
        """Compare every token of the index with the documents; what is published meanwhile waits for it."""
        try:
            with transaction.atomic(using=self.alias), connections[self.alias].cursor() as cursor:
                # With this rank, the index is compared with the documents as well, and not only with itself.
                cursor.execute(f"INSERT INTO {_FTS}({_FTS}, rank) VALUES ('integrity-check', 1)")  # noqa: S608 - our own names
        except DatabaseError as error:
            return str(error)
        return ""

    def rebuild(self) -> None:
        """Let FTS5 read all documents again."""
        with connections[self.alias].cursor() as cursor:
            cursor.execute(f"INSERT INTO {_FTS}({_FTS}) VALUES ('rebuild')")  # noqa: S608 - our own names


def _all_of(terms: Sequence[str]) -> str:
    beginnings = [f'"{term}" *' for term in terms]
    return f"({' AND '.join(beginnings)})"
