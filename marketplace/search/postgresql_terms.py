"""What PostgreSQL's index of the search is asked for: the tables of words say what begins with a term, and how often.

For a beginning of words, GIN collects every document that has one of them before it looks at the other terms. So the
index is asked for the rare terms alone, and what these leave is looked into for the frequent ones. What is frequent is
told by a sample: one document of 128, with its words. What begins no word finds nothing, which is known without a
search. A trigger adds the words of each document that is written (migration 0032), and those of its name by themselves
(migration 0040). None is taken away, and one that no document has any more does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from marketplace.search.engine import Alternatives
from vskill.db import prepared_cursor

WORDS: Final = "marketplace_searchword"
NAMED: Final = "marketplace_searchnameword"
_SAMPLE: Final = "marketplace_searchsample"
# In so many documents of the sample, which is some two thousand of all.
_FREQUENT: Final = 16
_LAST_CHARACTER: Final = "\U0010ffff"
# So many words that begin with a term are looked for each by itself: of those, and not of a beginning, the index passes
# by documents that lack another term. Of more, it takes longer to tell for each document.
_MOST_WORDS: Final = 16
_BEGINS: Final = "word >= asked.beginning AND word < asked.after"
_OF_TABLE: Final = f"ARRAY(SELECT DISTINCT word FROM {{table}} WHERE {_BEGINS} ORDER BY word LIMIT %s)"  # noqa: S608 - our own names
_LOOK_UP: Final = f"""
    SELECT asked.beginning, {_OF_TABLE.format(table=WORDS)}, {_OF_TABLE.format(table=NAMED)},
        (SELECT COUNT(*) FROM (SELECT 1 FROM {_SAMPLE} WHERE {_BEGINS} LIMIT %s) AS first)
    FROM unnest(%s::text[], %s::text[]) AS asked (beginning, after)
"""  # noqa: S608 - our own names
# A term in a query of PostgreSQL.
_BEGINNING: Final = "'{}':*"
_WHOLE: Final = "'{}'"


class _Term(NamedTuple):
    """The words that begin with a term, and those of names, and whether many documents have some of the words.

    Of both there is at most one more than ``_MOST_WORDS``.
    """

    words: tuple[str, ...]
    named: tuple[str, ...]
    is_frequent: bool


class AskedIndex(NamedTuple):
    """What an index is asked for, and what is looked for in the documents that it finds, if anything."""

    asked: str | None
    passing: str | None


class LookedUpTerms:
    """The terms of the searches of one request, each looked up once; call its methods on a database thread."""

    def __init__(self, alias: str) -> None:
        """Begin with no term looked up in the database ``alias``."""
        self._alias = alias
        self._terms: dict[str, _Term] = {}

    def look_up(self, terms: Iterable[str]) -> None:
        """Look up by one statement those that are not looked up yet."""
        new = sorted(set(terms) - self._terms.keys())
        if not new:
            return
        with prepared_cursor(self._alias) as cursor:
            most = _MOST_WORDS + 1
            cursor.execute(_LOOK_UP, [most, most, _FREQUENT, new, [term + _LAST_CHARACTER for term in new]])
            for term, words, named, sampled in cursor.fetchall():
                self._terms[term] = _Term(tuple(words), tuple(named), sampled == _FREQUENT)

    def is_frequent(self, term: str) -> bool:
        """Return whether many documents have a term that is looked up."""
        return self._terms[term].is_frequent

    def possible(self, wanted: Alternatives) -> list[Sequence[str]]:
        """Return the alternatives that have terms, all of which begin some word."""
        self.look_up(term for terms in wanted for term in terms)
        return [terms for terms in wanted if terms and all(self._terms[term].words for term in terms)]

    def indexed(self, wanted: Alternatives) -> AskedIndex:
        """Return what the index of all words is asked for; the alternatives are ``possible``."""
        return self._indexed(wanted, {term: self._terms[term].words for terms in wanted for term in terms})

    def indexed_names(self, wanted: Alternatives) -> AskedIndex:
        """Return what the index of names is asked for, nothing where it is known that no name has all terms."""
        named = [terms for terms in wanted if all(self._terms[term].named for term in terms)]
        if not named:
            return AskedIndex(None, None)
        return self._indexed(named, {term: self._terms[term].named for terms in named for term in terms})

    def _indexed(self, wanted: Alternatives, words: Mapping[str, Sequence[str]]) -> AskedIndex:
        """Ask for each of the ``words`` that begin with a term where they are few, else for the beginning.

        A beginning that is frequent is looked for in the documents, unless all terms are frequent.
        """
        written = {
            term: f"({' | '.join(map(_WHOLE.format, some))})" if len(some) <= _MOST_WORDS else _BEGINNING.format(term)
            for term, some in words.items()
        }
        indexed = []
        for terms in wanted:
            some = [term for term in terms if len(words[term]) <= _MOST_WORDS or not self.is_frequent(term)]
            indexed.append(terms if all(map(self.is_frequent, some)) else some)
        is_all = all(len(some) == len(terms) for some, terms in zip(indexed, wanted, strict=True))
        return AskedIndex(_query(indexed, written.__getitem__), None if is_all else beginnings(wanted))


def beginnings(alternatives: Alternatives) -> str:
    """Return a query of PostgreSQL for what has words that begin with all terms of one of the alternatives."""
    return _query(alternatives, _BEGINNING.format)


def _query(alternatives: Alternatives, written: Callable[[str], str]) -> str:
    """Return a query of PostgreSQL, in which ``written`` says how a term is written."""
    return " | ".join(f"({' & '.join(map(written, terms))})" for terms in alternatives)
