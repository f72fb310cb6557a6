"""Ask a search that finds nothing more loosely: other endings, other spellings, and at last all words but one.

Each step is taken only where the one before found nothing, so that what somebody typed is found first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Final

from django.db.models import QuerySet

from marketplace.models import SkillEntry
from marketplace.search.engines import any_of, by_position, matching

# A repaired word costs a few look-ups in the index, and a longer query is not a name with a slip in it.
_MOST_REPAIRED: Final = 5
# A word is looked for among the names with a word that begins as it does, the most downloaded ones first.
_BEGINNINGS: Final = (3, 2, 1)
_NAMES: Final = 200
# Share of letters in common, as difflib counts it: one wrong, missing, doubled or swapped letter in a word of four.
_LEAST_LIKENESS: Final = 0.74
# Of two words, one is half of what was meant.
_LEAST_FOR_FEWER: Final = 3
# What is left of a word without its ending has to say something.
_LEAST_STEM: Final = 4
_ENDINGS: Final = (("ies", 3), ("sses", 2), ("shes", 2), ("ches", 2), ("xes", 2), ("s", 1), ("ing", 3), ("ed", 2))

Matches = Callable[..., QuerySet[SkillEntry]]
"""What finds skills by alternatives, as ``matching`` does among its skills."""


@dataclass(frozen=True)
class Asked:
    """What is searched for: every term of one of the ``alternatives``; ``terms`` are all of them, which are scored.

    ``loose`` says that no skill has every word that was typed, and ``lacks_one`` that a skill is found without one.
    """

    alternatives: tuple[tuple[str, ...], ...]
    terms: tuple[str, ...]
    loose: bool = False
    lacks_one: bool = False


def as_typed(terms: Sequence[str]) -> Asked:
    """Return the search for every one of ``terms``, the terms of a query."""
    return Asked((tuple(terms),), tuple(terms))


def loosened(skills: QuerySet[SkillEntry], terms: Sequence[str], *, few: bool = False) -> Asked:
    """Return the strictest looser search that finds some of ``skills``; that for ``terms`` as they are where none does.

    ``few`` says that these are few. Call it where the terms as they are find nothing.
    """
    matches = partial(matching, skills, few=few)
    found = (asked for asked in _looser(matches, terms) if any_of(matches(asked.alternatives)))
    return next(found, as_typed(terms))


def _looser(matches: Matches, terms: Sequence[str]) -> Iterator[Asked]:
    """Yield one search after the other, each looser than the one before it."""
    words = tuple(dict.fromkeys(_stem(term) for term in terms))
    if words != tuple(terms):
        yield Asked((words,), words, loose=True)
    if len(terms) <= _MOST_REPAIRED:
        repaired = [_repaired(matches, term) for term in terms]
        missing = repaired.count("")
        words = tuple(dict.fromkeys(word for word in repaired if word))
        if not missing:
            yield Asked((words,), words, loose=True)
        elif missing == 1 and len(terms) >= _LEAST_FOR_FEWER:
            yield Asked((words,), words, loose=True)
            return
        else:
            return
    if len(words) >= _LEAST_FOR_FEWER:
        words = tuple(dict.fromkeys(_stem(word) for word in words))
        fewer = tuple(words[:place] + words[place + 1 :] for place in range(len(words)))
        yield Asked(fewer, words, loose=True, lacks_one=True)


def _stem(term: str) -> str:
    """Return a word without its English ending; as the beginning of a token it finds the word with any of them."""
    for ending, length in _ENDINGS:
        if term.endswith(ending) and len(term) - length >= _LEAST_STEM and not term.endswith("ss"):
            return term[:-length]
    return term


def _repaired(matches: Matches, term: str) -> str:
    """Return the term where it is found, else its stem or the nearest word of a name, and '' where none is near."""
    for word in dict.fromkeys((term, _stem(term))):
        if any_of(matches([[word]])):
            return word
    for length in _BEGINNINGS:
        start = term[:length]
        having = by_position(matches([[start]], in_names=True))
        names = having.values_list("search_document__name", flat=True)[:_NAMES]
        known = {word for name in names for word in name.split() if word.startswith(start)}
        if near := get_close_matches(term, sorted(known), n=1, cutoff=_LEAST_LIKENESS):
            return near[0]
    return ""
