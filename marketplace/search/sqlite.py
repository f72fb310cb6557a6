"""Search on SQLite: FTS5 over the documents, with an index of beginnings; triggers keep it in step with them.

FTS5 reads documents in the order of their numbers, the last bits of which are the key of the skill: what is nearest is
found in the index alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.db import DatabaseError, connections, transaction
from django.db.models import F, QuerySet
from django.db.models.expressions import RawSQL

from marketplace.models import SkillEntry
from marketplace.search.documents import FIELDS, POSITION_BITS
from marketplace.search.engine import DOCUMENTS, Alternatives, Condition, SearchEngine
from vskill.unindexed import InRead

_FTS: Final = "marketplace_searchfts"
# The words in the index (migration 0039).
_WORDS: Final = "marketplace_searchftsword"
_BEGINS: Final = f"EXISTS (SELECT 1 FROM {_WORDS} WHERE term >= %s AND term < %s)"  # noqa: S608 - our own names
_LAST_CHARACTER: Final = "\U0010ffff"
_KEY: Final = f"(rowid & {(1 << POSITION_BITS) - 1})"


class SqliteEngine(SearchEngine):
    """FTS5."""

    def __init__(self, alias: str) -> None:
        """Begin with no term looked up."""
        super().__init__(alias)
        self._begins_any: dict[str, bool] = {}

    def expect(self, terms: Iterable[str]) -> None:
        """Look up by one statement which of them begin a word."""
        if new := sorted(set(terms) - self._begins_any.keys()):
            asked = [end for term in new for end in (term, term + _LAST_CHARACTER)]
            with connections[self.alias].cursor() as cursor:
                cursor.execute(f"SELECT {', '.join([_BEGINS] * len(new))}", asked)
                self._begins_any |= {term: bool(found) for term, found in zip(new, cursor.fetchone(), strict=True)}

    @property
    def tables(self) -> list[str]:
        """Return the table of FTS5."""
        return [_FTS]

    def condition(self, wanted: Alternatives, in_names: bool) -> Condition | None:
        """Return a match of FTS5, and the join of what it finds to the documents."""
        asked = self._match(wanted, in_names)
        # With the sign, the index is read once and skills are looked up. Without it, SQLite may ask the index for each
        # skill, as it does where no order is wanted.
        return ([f"{_FTS} MATCH %s", f"{DOCUMENTS}.id = +{_FTS}.rowid"], [asked]) if asked else None

    def _match(self, wanted: Alternatives, in_names: bool) -> str:
        """Return what FTS5 is asked for, empty where some term of each alternative begins no word."""
        self.expect({term for terms in wanted for term in terms})
        possible = [terms for terms in wanted if terms and all(self._begins_any[term] for term in terms)]
        asked = " OR ".join(_all_of(terms) for terms in possible)
        return f"name : ({asked})" if asked and in_names else asked

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
        self,
        alternatives: Alternatives,
        most: int,
        *,
        in_names: bool = False,
        whole_words: bool = False,
        among: QuerySet[Any] | None = None,
    ) -> list[int]:
        """Read the index alone, ``in_names`` the names in it, and ``among`` keys that are read before.

        With ``whole_words`` nothing is found: beginnings are found as fast.
        """
        asked = "" if whole_words else self._match(alternatives, in_names)
        if not asked:
            return []
        keys, given = among.query.sql_with_params() if among is not None else ("", ())
        passing = f" AND {_KEY} IN ({keys})" if keys else ""
        with connections[self.alias].cursor() as cursor:
            text = f"SELECT {_KEY} FROM {_FTS} WHERE {_FTS} MATCH %s{passing} ORDER BY rowid DESC LIMIT %s"  # noqa: S608 - our own names
            cursor.execute(text, [asked, *given, most])
            return [int(key) for (key,) in cursor.fetchall()]

    def met(self, skills: QuerySet[SkillEntry], alternatives: Alternatives) -> QuerySet[SkillEntry]:
        """Read the keys from the index, which takes less time than to look into a text."""
        keys = RawSQL(f"SELECT {_KEY} FROM {_FTS} WHERE {_FTS} MATCH %s", (self._match(alternatives, in_names=False),))  # noqa: S608, S611 - our own names
        return skills.filter(InRead(F("pk"), keys))

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
