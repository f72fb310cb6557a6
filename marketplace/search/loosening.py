"""Ask a search that finds nothing more loosely: other endings, other spellings, and at last all words but one.

Each step is taken only where the one before found nothing, so that what somebody typed is found first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from marketplace.search.engine import SearchEngine
from marketplace.search.spelling import Near, near_words

# A repaired word costs a few look-ups in the index, and a longer query is not a name with a slip in it.
_MOST_REPAIRED: Final = 8
# Of two words, one is half of what was meant.
_LEAST_FOR_FEWER: Final = 3
# What is left of a word without its ending has to say something.
_LEAST_STEM: Final = 4
_ENDINGS: Final = (("ies", 3), ("sses", 2), ("shes", 2), ("ches", 2), ("xes", 2), ("s", 1), ("ing", 3), ("ed", 2))

NearOf = Callable[[Sequence[str]], Mapping[str, Near]]
"""What returns the words that are like each term, as ``near_words`` does."""
FindsAny = Callable[..., bool]
"""What says whether a term finds any of the skills, or with ``in_names`` the name of one."""


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


def with_stems(terms: Sequence[str]) -> set[str]:
    """Return the terms of a query, and what ``loosened`` searches for first in place of them."""
    return {*terms, *map(_stem, terms)}


def loosened(
    terms: Sequence[str],
    *,
    namespace: str,
    engine: SearchEngine,
    finds: Callable[[Asked], bool],
    finds_any: FindsAny,
) -> Asked:
    """Return the strictest looser search that finds some skills; that for ``terms`` as they are where none does.

    ``namespace`` is that of the skills, ``engine`` that of their database, ``finds`` says whether a search finds any of
    them, and ``finds_any`` whether a term does. Call it where the terms as they are find nothing.
    """

    def near_of(terms: Sequence[str]) -> Mapping[str, Near]:
        near = near_words(engine.alias, namespace, terms)
        engine.expect({use.word for one in near.values() for use in one.words})
        return near

    looser = _looser(finds_any, near_of, terms)
    return next((asked for asked in looser if finds(asked)), as_typed(terms))


def _looser(finds_any: FindsAny, near_of: NearOf, terms: Sequence[str]) -> Iterator[Asked]:
    """Yield one search after the other, each looser than the one before it."""
    words = tuple(dict.fromkeys(_stem(term) for term in terms))
    if words != tuple(terms):
        yield Asked((words,), words, loose=True)
    if len(terms) <= _MOST_REPAIRED:
        near = near_of(terms)
        # A word of names is no slip. Of others the stem is found wherever the term is.
        slips = {term for term in terms if not near[term].in_names and not finds_any(_stem(term))}
        known = {term: _known(finds_any, term, near[term]) for term in terms if term not in slips}
        guessed: tuple[str, ...] = ()
        if slips and all(near[term].words for term in slips):
            # The nearest word of each is mostly found, which a search for all of them says as well.
            guessed = tuple(dict.fromkeys(known.get(term) or near[term].words[0].word for term in terms))
            yield Asked((guessed,), guessed, loose=True)
        repaired = [_nearest(finds_any, near[term]) if term in slips else known[term] for term in terms]
        missing = repaired.count("")
        words = tuple(dict.fromkeys(word for word in repaired if word))
        if not missing:
            if words != guessed:
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


def _known(finds_any: FindsAny, term: str, near: Near) -> str:
    """Return a term that is found, or its stem where that alone is."""
    stem = _stem(term)
    return term if stem == term or near.in_names or finds_any(term) else stem


def _nearest(finds_any: FindsAny, near: Near) -> str:
    """Return the word that is nearest to a term that is not found, '' where none is near."""
    # Some of them may be of skills that whoever asks does not see, and what is searched for instead is told. Names are
    # fewer than texts, and are asked first.
    found = (word for word, named in near.words if (named and finds_any(word, in_names=True)) or finds_any(word))
    return next(found, "")
