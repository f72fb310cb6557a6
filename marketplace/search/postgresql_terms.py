"""What PostgreSQL's index of the search is asked for: the tables of words say what begins with a term, and how often.

For a beginning of words, GIN collects every document that has one of them before it looks at the other terms. So the
index is asked for the rare terms alone, and what these leave is looked into for the frequent ones. What is frequent is
told by a sample: one document of 128, with its words. What begins no word finds nothing, which is known without a
search. A trigger adds the words of each document that is written (migration 0032). None is taken away, and one that no
document has any more does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from marketplace.search.engine import Alternatives
from vskill.db import prepared_cursor

WORDS: Final = "marketplace_searchword"
_SAMPLE: Final = "marketplace_searchsample"
# In so many documents of the sample, which is some two thousand of all.
_FREQUENT: Final = 16
_LAST_CHARACTER: Final = "\U0010ffff"
# So many words that begin with a term are looked for each by itself: of those, and not of a beginning, the index passes
# by documents that lack another term. Of more, it takes longer to tell for each document.
_MOST_WORDS: Final = 16
_BEGINS: Final = "word >= asked.beginning AND word < asked.after"
_LOOK_UP: Final = f"""
    SELECT asked.beginning, ARRAY(SELECT DISTINCT word FROM {WORDS} WHERE {_BEGINS} ORDER BY word LIMIT %s),
        (SELECT COUNT(*) FROM (SELECT 1 FROM {_SAMPLE} WHERE {_BEGINS} LIMIT %s) AS first)
    FROM unnest(%s::text[], %s::text[]) AS asked (beginning, after)
"""  # noqa: S608 - our own names
# A term in a query of PostgreSQL.
_BEGINNING: Final = "'{}':*"
_WHOLE: Final = "'{}'"


class _Term(NamedTuple):
    """The words that begin with a term, at most one more than ``_MOST_WORDS``, and whether many documents have them."""

    words: tuple[str, ...]
    is_frequent: bool

    @property
    def is_indexed(self) -> bool:
        """Return whether the index is asked for each of the words."""
        return len(self.words) <= _MOST_WORDS


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
            cursor.execute(_LOOK_UP, [_MOST_WORDS + 1, _FREQUENT, new, [term + _LAST_CHARACTER for term in new]])
            for term, words, sampled in cursor.fetchall():
                self._terms[term] = _Term(tuple(words), sampled == _FREQUENT)

    def is_frequent(self, term: str) -> bool:
        """Return whether many documents have a term that is looked up."""
        return self._terms[term].is_frequent

    def possible(self, wanted: Alternatives) -> list[Sequence[str]]:
        """Return the alternatives that have terms, all of which begin some word."""
        self.look_up(term for terms in wanted for term in terms)
        return [terms for terms in wanted if terms and all(self._terms[term].words for term in terms)]

    def indexed(self, wanted: Alternatives) -> tuple[str, str | None]:
        """Return what the index is asked for, and what is looked for in the documents that it finds."""
        indexed = [self._asked_for(terms) for terms in wanted]
        if all(len(some) == len(terms) for some, terms in zip(indexed, wanted, strict=True)):
            return _query(wanted, self._each_word), None
        return _query(indexed, self._each_word), beginnings(wanted)

    def _asked_for(self, terms: Sequence[str]) -> Sequence[str]:
        """Return the terms that the index is asked for: of frequent ones those with few words, all if none is rare."""
        known = self._terms
        some = [term for term in terms if known[term].is_indexed or not known[term].is_frequent]
        return terms if all(known[term].is_frequent for term in some) else some

    def _each_word(self, term: str) -> str:
        """Return a term as the index is asked for it: each word that begins with it, or the beginning."""
        known = self._terms[term]
        return f"({' | '.join(map(_WHOLE.format, known.words))})" if known.is_indexed else _BEGINNING.format(term)


def beginnings(alternatives: Alternatives) -> str:
    """Return a query of PostgreSQL for what has words that begin with all terms of one of the alternatives."""
    return _query(alternatives, _BEGINNING.format)


def _query(alternatives: Alternatives, written: Callable[[str], str]) -> str:
    """Return a query of PostgreSQL, in which ``written`` says how a term is written."""
    return " | ".join(f"({' & '.join(map(written, terms))})" for terms in alternatives)
