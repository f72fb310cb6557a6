"""Search on PostgreSQL: text vectors with GIN over the documents, and the table of the words in them.

For a beginning of words, GIN collects every document that has one of them before it looks at the other terms. For whole
words it does not: it follows the rarest, and looks only there whether the others are. So a term is looked up among the
words first, and where few begin with it, these are searched for in its place. What begins no word finds nothing, which
is known without a search. A trigger adds the words of each document that is written (migration 0032); none is taken
away, and one that no document has any more does no harm.

GIN gives no order, so all that is found is read before the first is known. What is downloaded much has an index of its
own, which is asked first and is mostly enough.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from typing import Final

from django.db import connections, transaction
from django.db.models import QuerySet

from marketplace.models import SkillEntry
from marketplace.search.documents import position_of
from marketplace.search.engine import DOCUMENTS, Alternatives, Condition, SearchEngine
from vskill.db import prepared_cursor

WORDS: Final = "marketplace_searchword"
# Searched for in place of a beginning; with more, comparing each document with them takes longer than collecting.
_MOST_WORDS: Final = 80
# The same for all terms together.
_MOST_COMPARED: Final = 500
# Documents that are looked into without an index.
_FEW: Final = 500
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
_LOOK_UP: Final = f"""
    SELECT asked.beginning, ARRAY(
        SELECT DISTINCT word FROM {WORDS} WHERE word >= asked.beginning AND word < asked.after ORDER BY word LIMIT %s
    )
    FROM unnest(%s::text[], %s::text[]) AS asked (beginning, after)
"""  # noqa: S608 - our own names
_UNKNOWN: Final = f"""
    SELECT held.word FROM ts_stat('SELECT words FROM {DOCUMENTS}') AS held
    WHERE NOT EXISTS (SELECT 1 FROM {WORDS} AS known WHERE known.word = held.word)
"""  # noqa: S608 - our own names
# Nearly every document has words that begin with one of each six of these.
_BEGINNINGS: Final = string.ascii_lowercase + string.digits
_AT_ONCE: Final = 6


class PostgresqlEngine(SearchEngine):
    """GIN, asked for words."""

    def __init__(self, alias: str) -> None:
        """Begin with no word looked up."""
        super().__init__(alias)
        # The words that begin with a term, ``None`` where these are too many.
        self._words: dict[str, tuple[str, ...] | None] = {}
        self._few: dict[tuple[str, str], bool] = {}

    def expect(self, terms: Iterable[str]) -> None:
        """Look up the words of all of them by one statement."""
        self._look_up(set(terms))

    @property
    def tables(self) -> list[str]:
        """Return no table: the vectors are columns of the documents."""
        return []

    def condition(self, wanted: Alternatives, in_names: bool) -> Condition | None:
        """Return a match of a vector."""
        possible = self._possible(wanted)
        return self._condition(possible, f"{DOCUMENTS}.{_vector(in_names)}") if possible else None

    def unindexed(self, wanted: Alternatives, in_names: bool) -> Condition:
        """Return a match of a vector that is computed, which is in no index."""
        asked = _any_of(_all_of(map(_beginning, terms)) for terms in wanted)
        return [f"({DOCUMENTS}.{_vector(in_names)} || ''::tsvector) @@ %s::tsquery"], [asked]

    def by_position(self, skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
        """Follow the numbers of the documents."""
        return skills.order_by("-search_document__id")

    def below(self, skills: QuerySet[SkillEntry], position: int) -> QuerySet[SkillEntry]:
        """Compare the numbers of the documents."""
        return skills.filter(search_document__id__lt=position)

    def nearest(
        self, alternatives: Alternatives, most: int, *, in_names: bool = False, whole_words: bool = False
    ) -> list[int]:
        """Read documents alone: else the skill of each is looked up before any is sorted."""
        wanted, vector = self._possible([terms for terms in alternatives if terms]), _vector(in_names)
        if whole_words:
            wanted = [terms for terms in wanted if all(map(self._may_be_a_word, terms))]
        if not wanted:
            return []
        if whole_words:
            where, asked = [f"{vector} @@ %s::tsquery"], [_any_of(_all_of(map(_word, terms)) for terms in wanted)]
        else:
            where, asked = self._condition(wanted, vector)
        text = (_NAMED if in_names else _POPULAR_FIRST).format(where=" AND ".join(where))
        parameters = [*asked, most] if in_names else [*asked, most, *asked, most, most]
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
        groups = [_BEGINNINGS[start : start + _AT_ONCE] for start in range(0, len(_BEGINNINGS), _AT_ONCE)]
        with transaction.atomic(using=self.alias), connections[self.alias].cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            for name, (vector, those) in _INDEXES.items():
                asked = [f"'{' | '.join(f'{one}:*' for one in group)}'::tsquery" for group in groups]
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
            cursor.execute(f"INSERT INTO {WORDS} {_UNKNOWN}")

    def _possible(self, wanted: Alternatives) -> list[Sequence[str]]:
        """Return the alternatives whose terms all begin some word."""
        self._look_up({term for terms in wanted for term in terms})
        return [terms for terms in wanted if all(self._words[term] != () for term in terms)]

    def _look_up(self, terms: set[str]) -> None:
        new = sorted(terms - self._words.keys())
        if not new:
            return
        with prepared_cursor(self.alias) as cursor:
            cursor.execute(_LOOK_UP, [_MOST_WORDS + 1, new, [term + _LAST_CHARACTER for term in new]])
            for term, words in cursor.fetchall():
                self._words[term] = tuple(words) if len(words) <= _MOST_WORDS else None

    def _may_be_a_word(self, term: str) -> bool:
        words = self._words[term]
        return words is None or term in words

    def _condition(self, wanted: Alternatives, vector: str) -> Condition:
        """Return the conditions for alternatives that are possible."""
        compared = sum(len(self._words[term] or ()) for terms in wanted for term in terms)
        if compared > _MOST_COMPARED or all(len(terms) == 1 for terms in wanted):
            # Of one term alone, everything is collected in any case.
            return _matches(vector, _any_of(_all_of(map(_beginning, terms)) for terms in wanted))
        if len(wanted) == 1:
            known = _all_of(self._term(term) for term in wanted[0] if self._words[term] is not None)
            others = _all_of(_beginning(term) for term in wanted[0] if self._words[term] is None)
            if known and others and self._leaves_few(vector, known):
                # What is tested for being true is no condition that an index answers.
                return [f"{vector} @@ %s::tsquery", f"({vector} @@ %s::tsquery) IS TRUE"], [known, others]
        return _matches(vector, _any_of(_all_of(map(self._term, terms)) for terms in wanted))

    def _term(self, term: str) -> str:
        words = self._words[term]
        return _beginning(term) if words is None else _any_of(map(_word, words))

    def _leaves_few(self, vector: str, query: str) -> bool:
        """Return whether so few documents match that each can be looked into."""
        if (vector, query) not in self._few:
            text = f"SELECT COUNT(*) FROM (SELECT 1 FROM {DOCUMENTS} WHERE {vector} @@ %s::tsquery LIMIT %s) AS first"  # noqa: S608 - constants
            with connections[self.alias].cursor() as cursor:
                cursor.execute(text, [query, _FEW + 1])
                self._few[vector, query] = cursor.fetchone()[0] <= _FEW
        return self._few[vector, query]


def _vector(in_names: bool) -> str:
    return "names" if in_names else "words"


def _matches(vector: str, query: str) -> Condition:
    return [f"{vector} @@ %s::tsquery"], [query]


def _word(word: str) -> str:
    return f"'{word}'"


def _beginning(term: str) -> str:
    return f"'{term}':*"


def _all_of(parts: Iterable[str]) -> str:
    return " & ".join(parts)


def _any_of(parts: Iterable[str]) -> str:
    return f"({' | '.join(parts)})"
