"""Search on SQLite: FTS5 over the documents, with an index of beginnings; triggers keep it in step with them.

FTS5 reads documents in the order of their numbers, the last bits of which are the key of the skill: what is nearest is
found in the index alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.db import DatabaseError, connections, transaction
from django.db.models import F, QuerySet
from django.db.models.expressions import RawSQL

from marketplace.models import SkillEntry
from marketplace.search.documents import FIELDS, POSITION_BITS
from marketplace.search.engine import DOCUMENTS, Alternatives, Among, Condition, SearchEngine
from vskill.unindexed import InRead

_FTS: Final = "marketplace_searchfts"
# The words in the index (migration 0039).
_WORDS: Final = "marketplace_searchftsword"
# Beginnings that FTS5 has in an index of their own. For longer ones it collects every document that has one of their
# words before it looks at the other terms.
_INDEXED_LENGTH: Final = 3
# So many words that begin with a longer term are looked for each by itself: FTS5 then passes by documents that lack
# another term.
_MOST_WORDS: Final = 16
# The next word follows the last one and a character that no word has.
_LOOK_UP: Final = f"""
    WITH RECURSIVE word (beginning, found, number) AS (
        SELECT value, (SELECT term FROM {_WORDS} WHERE term >= value AND term < value || char(1114111) LIMIT 1), 1
        FROM json_each(%s)
        UNION ALL
        SELECT beginning, (SELECT term FROM {_WORDS} WHERE term >= found || char(1)
                           AND term < beginning || char(1114111) LIMIT 1), number + 1
        FROM word WHERE found IS NOT NULL AND number <= %s AND LENGTH(beginning) > {_INDEXED_LENGTH})
    SELECT beginning, found FROM word WHERE found IS NOT NULL ORDER BY beginning, number
"""  # noqa: S608 - our own names
_KEY: Final = f"(rowid & {(1 << POSITION_BITS) - 1})"


class SqliteEngine(SearchEngine):
    """FTS5."""

    # Their keys are read before.
    most_among = 10_000

    def __init__(self, alias: str) -> None:
        """Begin with no term looked up."""
        super().__init__(alias)
        # The words that begin with a term; of a short one, the first.
        self._found: dict[str, list[str]] = {}

    def expect(self, terms: Iterable[str]) -> None:
        """Look up by one statement the words that begin with them."""
        if new := sorted(set(terms) - self._found.keys()):
            self._found |= {term: [] for term in new}
            with connections[self.alias].cursor() as cursor:
                cursor.execute(_LOOK_UP, [json.dumps(new), _MOST_WORDS])
                for term, word in cursor.fetchall():
                    self._found[term].append(word)

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
        possible = [terms for terms in wanted if terms and all(self._found[term] for term in terms)]
        asked = self._any_of(possible)
        return f"name : ({asked})" if asked and in_names else asked

    def _any_of(self, possible: Alternatives) -> str:
        """Return a query for one of the alternatives, in which the term with the most words stands once."""
        each = {term for terms in possible for term in terms}
        widest = max(each, key=lambda term: (len(term) <= _INDEXED_LENGTH, len(self._found[term]), term), default="")
        rests = [[term for term in terms if term != widest] for terms in possible if widest in terms]
        if len(rests) < 2 or not all(rests):
            return " OR ".join(f"({' AND '.join(map(self._asked, terms))})" for terms in possible)
        once = f"({self._asked(widest)} AND ({self._any_of(rests)}))"
        others = [terms for terms in possible if widest not in terms]
        return f"{once} OR {self._any_of(others)}" if others else once

    def _asked(self, term: str) -> str:
        """Return a term as FTS5 is asked for it: each word that begins with it, or the beginning."""
        words = self._found[term]
        if len(term) <= _INDEXED_LENGTH or len(words) > _MOST_WORDS:
            return f'"{term}" *'
        return f"({' OR '.join(f'{chr(34)}{word}{chr(34)}' for word in words)})"

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
        among: Sequence[Among] = (),
        last: int | None = None,
    ) -> list[int]:
        """Read the index alone, ``in_names`` the names in it, with keys up to ``last``.

        The keys that are ``among`` those with the rarest value are read before, unless they are many.
        """
        if not (asked := self._match(alternatives, in_names)):
            return []
        where: list[str] = [f"{_FTS} MATCH %s"]
        given: list[Any] = [asked]
        if among and among[0].number <= self.most_among:
            # Written for this database, which need not be of the kind of the default one.
            keys, parameters = among[0].keys.query.get_compiler(self.alias).as_sql()
            where, given = [*where, f"{_KEY} IN ({keys})"], [*given, *parameters]
        if last is not None:
            where, given = [*where, f"{_KEY} <= %s"], [*given, last]
        with connections[self.alias].cursor() as cursor:
            text = f"SELECT {_KEY} FROM {_FTS} WHERE {' AND '.join(where)} ORDER BY rowid DESC LIMIT %s"  # noqa: S608 - our own names
            cursor.execute(text, [*given, most])
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
