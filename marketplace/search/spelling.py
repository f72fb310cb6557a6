"""Find the word that somebody meant: the words of names, kept with what is left of each without one of its letters.

A slip is a letter that is wrong, missing, too many, or in the place of its neighbour. What was typed and what was meant
then have a spelling in common, each without a letter at most, so that a look-up of the index finds one by the other
whatever the number of words is (the method of symmetric deletion). Words are only added: one that no skill has any
more finds nothing, and is no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from django.db.models import F

from marketplace.models.derived import NameSpelling

SHORTEST: Final = 3
LONGEST: Final = 32
# Share of letters in common, as difflib counts it: one wrong, missing, doubled or swapped letter in a word of four.
_LEAST_LIKENESS: Final = 0.74
_MOST_NEAR: Final = 3
_AT_ONCE: Final = 500


def spellings(word: str) -> list[str]:
    """Return a word, and the word without each of its letters."""
    return list(dict.fromkeys([word, *(word[:place] + word[place + 1 :] for place in range(len(word)))]))


def words_of(names: Iterable[str]) -> set[str]:
    """Return the words of ``names``, tokens separated by spaces, that are long and short enough to have slips."""
    return {word for name in names for word in name.split() if SHORTEST <= len(word) <= LONGEST}


def add_words(alias: str, namespace: str, names: Iterable[str]) -> int:
    """Keep the words of ``names`` that an environment has not yet; return how many these are.

    Call it in the transaction of what has the names, in the database ``alias``.
    """
    new = sorted(unknown_words(alias, namespace, names))
    # In one order everywhere, so that two publications at once wait for each other in one direction alone.
    rows = (NameSpelling(namespace=namespace, spelling=one, word=word) for word in new for one in spellings(word))
    NameSpelling.objects.using(alias).bulk_create(rows, batch_size=_AT_ONCE, ignore_conflicts=True)
    return len(new)


def unknown_words(alias: str, namespace: str, names: Iterable[str]) -> set[str]:
    """Return those words of ``names`` that an environment has not."""
    words = sorted(words_of(names))
    known: set[str] = set()
    for part in _parts(words):
        rows = NameSpelling.objects.using(alias).filter(namespace=namespace, spelling__in=part, word=F("spelling"))
        known.update(rows.values_list("word", flat=True))
    return set(words) - known


def near_words(alias: str, namespace: str, terms: Sequence[str]) -> Mapping[str, list[str]]:
    """Return for each of ``terms`` the words of names that are like it, the nearest first; a word is like itself."""
    asked = {term: spellings(term) for term in terms if SHORTEST <= len(term) <= LONGEST}
    found: dict[str, set[str]] = {}
    for part in _parts(sorted({one for each in asked.values() for one in each})):
        rows = NameSpelling.objects.using(alias).filter(namespace=namespace, spelling__in=part)
        for spelling, word in rows.values_list("spelling", "word"):
            found.setdefault(spelling, set()).add(word)
    near: dict[str, list[str]] = {}
    for term in terms:
        words = {word for spelling in asked.get(term, ()) for word in found.get(spelling, ())}
        near[term] = get_close_matches(term, sorted(words), n=_MOST_NEAR, cutoff=_LEAST_LIKENESS)
    return near


def _parts(values: Sequence[str]) -> Iterator[Sequence[str]]:
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))
