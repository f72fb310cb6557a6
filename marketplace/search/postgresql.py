"""Search on PostgreSQL: text vectors with GIN over the documents, and the tables of the words in them.

For a beginning of words, GIN collects every document that has one of them before it looks at the other terms. So the
index is asked for the rare terms alone, and what these leave is looked into for the frequent ones. What is frequent is
told by a sample: one document of 128, with its words. What begins no word finds nothing, which is known without a
search. A trigger adds the words of each document that is written (migration 0032). None is taken away, and one that no
document has any more does no harm.

GIN gives no order, so all that is found is read before the first is known. What is downloaded much has an index of its
own, which is asked first and is mostly enough.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from django.db import connections, transaction
from django.db.models import QuerySet

from marketplace.models import SkillEntry
from marketplace.search.documents import position_of
from marketplace.search.engine import DOCUMENTS, Alternatives, Condition, SearchEngine
from vskill.db import prepared_cursor

_WORDS: Final = "marketplace_searchword"
_SAMPLE: Final = "marketplace_searchsample"
# In so many documents of the sample, which is some two thousand of all.
_FREQUENT: Final = 16
_LOOKED_AT: Final = 200
# Where the documents of skills begin that have an index of their own: those with 16 downloads.
_FIRST_POPULAR: Final = position_of(0, 16)
# As the index says it. What is tested for being true is nothing that the key of the documents is asked for.
_POPULAR: Final = f"(id >= {_FIRST_POPULAR}) IS TRUE"
_LAST_CHARACTER: Final = "\U0010ffff"
# Each index with the vector and the documents that it has.
_INDEXES: Final = {
    f"{DOCUMENTS}_words": ("words", "TRUE"),
    f"{DOCUMENTS}_names": ("names", "TRUE"),
    f"{DOCUMENTS}_popular": ("words", _POPULAR),
}
_NAMED: Final = f"SELECT id, skill_id FROM {DOCUMENTS} WHERE {{where}} ORDER BY id DESC LIMIT %s"  # noqa: S608 - our own names
# The rest is read only where there is not enough: the count is known before it begins.
_POPULAR_FIRST: Final = f"""
    WITH popular AS MATERIALIZED (
        SELECT id, skill_id FROM {DOCUMENTS} WHERE {{where}} AND {_POPULAR} ORDER BY id DESC LIMIT %s
    ), rest AS (
        SELECT id, skill_id FROM {DOCUMENTS}
        WHERE {{where}} AND id < {_FIRST_POPULAR} AND (SELECT COUNT(*) FROM popular) < %s ORDER BY id DESC LIMIT %s
    )
    SELECT id, skill_id FROM popular UNION ALL SELECT id, skill_id FROM rest
"""  # noqa: S608 - our own names
_BEGINS: Final = "word >= asked.beginning AND word < asked.after"
_LOOK_UP: Final = f"""
    SELECT asked.beginning, EXISTS (SELECT 1 FROM {_WORDS} WHERE {_BEGINS}),
        EXISTS (SELECT 1 FROM {_WORDS} WHERE word = asked.beginning),
        (SELECT COUNT(*) FROM (SELECT 1 FROM {_SAMPLE} WHERE {_BEGINS} LIMIT %s) AS first)
    FROM unnest(%s::text[], %s::text[]) AS asked (beginning, after)
"""  # noqa: S608 - our own names
_UNKNOWN: Final = f"""
    SELECT held.word FROM ts_stat('SELECT words FROM {DOCUMENTS}') AS held
    WHERE NOT EXISTS (SELECT 1 FROM {_WORDS} AS known WHERE known.word = held.word)
"""  # noqa: S608 - our own names
# A term in a query of PostgreSQL.
_BEGINNING: Final = "'{}':*"
_WHOLE: Final = "'{}'"
# Nearly every document has words that begin with one of each six of these.
_FIRST_LETTERS: Final = string.ascii_lowercase + string.digits
_AT_ONCE: Final = 6


class _Term(NamedTuple):
    """Whether some word begins with a term, whether it is a word itself, and whether many documents have such words."""

    begins_any: bool
    is_word: bool
    is_frequent: bool


class PostgresqlEngine(SearchEngine):
    """GIN, asked for what is rare."""

    def __init__(self, alias: str) -> None:
        """Begin with no term looked up."""
        super().__init__(alias)
        self._terms: dict[str, _Term] = {}

    def expect(self, terms: Iterable[str]) -> None:
        """Look up all of them by one statement."""
        self._look_up(set(terms))

    @property
    def tables(self) -> list[str]:
        """Return no table: the vectors are columns of the documents."""
        return []

    def condition(self, wanted: Alternatives, in_names: bool) -> Condition | None:
        """Return a match of a vector."""
        possible = self._possible(wanted)
        return self._beginnings(possible, f"{DOCUMENTS}.{_vector(in_names)}") if possible else None

    def unindexed(self, wanted: Alternatives, in_names: bool) -> Condition:
        """Return a match of a vector that is computed, which is in no index."""
        return [f"({DOCUMENTS}.{_vector(in_names)} || ''::tsvector) @@ %s::tsquery"], [_query(wanted, _BEGINNING)]

    def by_position(self, skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
        """Follow the numbers of the documents."""
        return skills.order_by("-search_document__id")

    def below(self, skills: QuerySet[SkillEntry], position: int) -> QuerySet[SkillEntry]:
        """Compare the numbers of the documents."""
        return skills.filter(search_document__id__lt=position)

    def nearest(
        self, alternatives: Alternatives, most: int, *, in_names: bool = False, whole_words: bool = False
    ) -> list[int]:
        """Read documents alone; joined, the skill of each would be looked up before any is sorted.

        ``in_names`` the shorter vector is asked, and with ``whole_words`` nothing where some term is no word.
        """
        wanted, vector = self._possible(alternatives), _vector(in_names)
        if whole_words:
            wanted = [terms for terms in wanted if all(self._terms[term].is_word for term in terms)]
        if not wanted:
            return []
        where, asked = [f"{vector} @@ %s::tsquery"], [_query(wanted, _WHOLE)]
        if not whole_words:
            where, asked = self._beginnings(wanted, vector)
        text = (_NAMED if in_names else _POPULAR_FIRST).format(where=" AND ".join(where))
        parameters: list[str | int] = [*asked, most] if in_names else [*asked, most, *asked, most, most]
        with connections[self.alias].cursor() as cursor:
            cursor.execute(text, parameters)
            return [int(key) for _position, key in sorted(cursor.fetchall(), reverse=True)[:most]]

    def any_of(self, skills: QuerySet[SkillEntry]) -> bool:
        """Ask for some hundred rows.

        Asked for one alone, PostgreSQL reads documents until it meets it: it expects some of every word, so that it
        reads all of them where there is none. For more it asks the index.
        """
        return bool(self.by_position(skills).values_list("pk", flat=True)[:_LOOKED_AT])

    def fault(self) -> str:
        """Count documents by the beginnings of their words, with the index and without it, and look up all words."""
        groups = [_FIRST_LETTERS[start : start + _AT_ONCE] for start in range(0, len(_FIRST_LETTERS), _AT_ONCE)]
        asked = [f"'{' | '.join(f'{one}:*' for one in group)}'::tsquery" for group in groups]
        with transaction.atomic(using=self.alias), connections[self.alias].cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            for name, (vector, those) in _INDEXES.items():
                # What is computed is in no index, and all rows are read, or those of an index would be. One statement,
                # so that nothing is published in between.
                read = [f"COUNT(*) FILTER (WHERE ({vector} || ''::tsvector) @@ {one} AND {those})" for one in asked]
                indexed = [f"(SELECT COUNT(*) FROM {DOCUMENTS} WHERE {vector} @@ {one} AND {those})" for one in asked]  # noqa: S608 - our own names
                cursor.execute(f"SELECT {', '.join(read + indexed)} FROM {DOCUMENTS}")  # noqa: S608 - our own names
                found = cursor.fetchone()
                for group, there, known in zip(groups, found, found[len(groups) :], strict=False):
                    if there != known:
                        return f"{there} documents have {vector} that begin with one of {group}, {name} knows {known}"
            cursor.execute(f"SELECT COUNT(*) FROM ({_UNKNOWN}) AS unknown")  # noqa: S608 - our own names
            (unknown,) = cursor.fetchone()
        return f"{unknown} words of documents are not looked up" if unknown else ""

    def rebuild(self) -> None:
        """Index the vectors again, and add the words that are not there."""
        with connections[self.alias].cursor() as cursor:
            for name in _INDEXES:
                cursor.execute(f"REINDEX INDEX {name}")
            cursor.execute(f"INSERT INTO {_WORDS} {_UNKNOWN}")

    def _possible(self, wanted: Alternatives) -> list[Sequence[str]]:
        """Return the alternatives that have terms, all of which begin some word."""
        self._look_up({term for terms in wanted for term in terms})
        return [terms for terms in wanted if terms and all(self._terms[term].begins_any for term in terms)]

    def _look_up(self, terms: set[str]) -> None:
        new = sorted(terms - self._terms.keys())
        if not new:
            return
        with prepared_cursor(self.alias) as cursor:
            cursor.execute(_LOOK_UP, [_FREQUENT, new, [term + _LAST_CHARACTER for term in new]])
            for term, begins_any, is_word, sampled in cursor.fetchall():
                self._terms[term] = _Term(begins_any, is_word, sampled == _FREQUENT)

    def _beginnings(self, wanted: Alternatives, vector: str) -> Condition:
        """Return the conditions for alternatives whose terms begin words."""
        where, asked = [f"{vector} @@ %s::tsquery"], _query(wanted, _BEGINNING)
        rare = [[term for term in terms if not self._terms[term].is_frequent] for terms in wanted]
        if rare == [list(terms) for terms in wanted] or not all(rare):
            return where, [asked]
        # What is tested for being true is no condition that an index answers.
        return [*where, f"({vector} @@ %s::tsquery) IS TRUE"], [_query(rare, _BEGINNING), asked]


def _vector(in_names: bool) -> str:
    return "names" if in_names else "words"


def _query(alternatives: Alternatives, term: str) -> str:
    """Return a query of PostgreSQL, in which each term is written as ``term`` says."""
    return " | ".join(f"({' & '.join(term.format(one) for one in terms)})" for terms in alternatives)
