"""Find the word that somebody meant: the words of skills, kept with what is left of each without one of its letters.

A slip is a letter that is wrong, missing, too many, or in the place of its neighbour. What was typed and what was meant
then have a spelling in common, each without a letter at most, so that a look-up of the index finds one by the other
whatever the number of words is (the method of symmetric deletion). Words are only added: one that no skill has any
more finds nothing, and is no harm. The text of a SKILL.md adds none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from django.db.models import F

from marketplace.models.derived import WordSpelling
from vskill.many_keys import rows_of

SHORTEST: Final = 3
LONGEST: Final = 32
# How many words of a skill are kept beside those of its name. The specification allows a description some 170 words.
MOST_OTHERS: Final = 200
_OTHERS: Final = ("tags", "owner", "repository", "description")
# Share of letters in common, as difflib counts it: one wrong, missing, doubled or swapped letter in a word of four.
_LEAST_LIKENESS: Final = 0.74
_MOST_NEAR: Final = 3
_AT_ONCE: Final = 500
# Whoever publishes many words that are near to each other makes no search slow.
_MOST_READ: Final = 5000
# A shorter word in another number is mostly another word.
_LEAST_FOR_NUMBER: Final = 5
# A letter that is missing in one place and too many in another makes another word of a short one: name and acme.
_LEAST_FOR_TWO: Final = 7


class WordUse(NamedTuple):
    """A word of a skill, and whether it is one of its name, which everybody may know."""

    word: str
    in_names: bool


@dataclass(frozen=True)
class Near:
    """The words that are like a term, the nearest first, each with whether names have it.

    ``in_names`` says that the term itself is a word of names.
    """

    words: tuple[WordUse, ...]
    in_names: bool = False


def spellings(word: str) -> list[str]:
    """Return a word, and the word without each of its letters."""
    return list(dict.fromkeys([word, *(word[:place] + word[place + 1 :] for place in range(len(word)))]))


def words_of(fields: Mapping[str, str], *, is_public: bool) -> set[WordUse]:
    """Return the words of a document that can have slips; ``is_public`` says that everybody may see its skill.

    Each of ``fields`` is tokens separated by spaces. A number is near to every other, so it is none of the words.
    """
    named = dict.fromkeys(_with_slips(fields["name"]))
    others = dict.fromkeys(word for name in _OTHERS for word in _with_slips(fields[name]) if word not in named)
    uses = {WordUse(word, is_public) for word in named}
    return uses | {WordUse(word, False) for word in list(others)[:MOST_OTHERS]}


def _with_slips(tokens: str) -> list[str]:
    return [word for word in tokens.split() if SHORTEST <= len(word) <= LONGEST and not word.isdecimal()]


def add_words(alias: str, namespace: str, words: Collection[WordUse]) -> int:
    """Keep those of ``words`` that an environment has not yet; return how many these are.

    Call it in the transaction of what has the words, in the database ``alias``.
    """
    new = sorted(unknown_words(alias, namespace, words))
    # In one order everywhere, so that two publications at once wait for each other in one direction alone.
    rows = (
        WordSpelling(namespace=namespace, spelling=one, word=word, in_names=in_names)
        for word, in_names in new
        for one in spellings(word)
    )
    WordSpelling.objects.using(alias).bulk_create(rows, batch_size=_AT_ONCE, ignore_conflicts=True)
    return len(new)


def unknown_words(alias: str, namespace: str, words: Collection[WordUse]) -> set[WordUse]:
    """Return those of ``words`` that an environment has not; one that is kept as a word of names is known as any."""
    known: set[WordUse] = set()
    for part in _parts(sorted({use.word for use in words})):
        rows = WordSpelling.objects.using(alias).filter(namespace=namespace, spelling__in=part, word=F("spelling"))
        known.update(WordUse(word, in_names) for word, in_names in rows.values_list("word", "in_names"))
    named = {use.word for use in {*known, *words} if use.in_names}
    return {use for use in words if use not in known and (use.in_names or use.word not in named)}


def near_words(alias: str, namespace: str, terms: Sequence[str]) -> Mapping[str, Near]:
    """Return for each of ``terms`` the words that are like it; a word is like itself.

    Of equally many slips, words of names come first.
    """
    asked = {term: [*_in_either_number(term)] for term in terms if SHORTEST <= len(term) <= LONGEST}
    found: dict[str, dict[str, bool]] = {}
    typed = sorted({spelling for each in asked.values() for one in each for spelling in spellings(one)})
    rows = rows_of(WordSpelling.objects.using(alias).filter(namespace=namespace), "spelling", typed)
    for spelling, word, in_names in rows.values_list("spelling", "word", "in_names")[:_MOST_READ]:
        words = found.setdefault(spelling, {})
        words[word] = words.get(word, False) or in_names
    near: dict[str, Near] = {}
    for term in terms:
        each = asked.get(term, [])
        like = {
            word: in_names
            for one in each
            for spelling in spellings(one)
            for word, in_names in found.get(spelling, {}).items()
        }
        near[term] = Near(_nearest(term, each, like), like.get(term, False))
    return near


def _in_either_number(term: str) -> Iterator[str]:
    """Yield a term, and with or without an s at its end, as the word may stand there."""
    yield term
    if len(term) >= _LEAST_FOR_NUMBER:
        yield term[:-1] if term.endswith("s") else f"{term}s"


def _nearest(term: str, each: Sequence[str], words: Mapping[str, bool]) -> tuple[WordUse, ...]:
    matcher = SequenceMatcher()
    matcher.set_seq2(term)
    rated = []
    for word, in_names in words.items():
        matcher.set_seq1(word)
        if matcher.real_quick_ratio() >= _LEAST_LIKENESS and (likeness := matcher.ratio()) >= _LEAST_LIKENESS:
            slips, in_other_number = min((_slips(typed, word), typed != term) for typed in each)
            if slips < 2 or len(term) >= _LEAST_FOR_TWO:
                rated.append((slips + in_other_number, not in_names, -likeness, word))
    return tuple(WordUse(word, not is_other) for _slips, is_other, _likeness, word in sorted(rated)[:_MOST_NEAR])


def _slips(typed: str, word: str) -> int:
    """Return how many slips are between two words that have a spelling in common: none, one, or two."""
    if typed == word:
        return 0
    begin = next((place for place, (a, b) in enumerate(zip(typed, word, strict=False)) if a != b), None)
    if begin is None:
        return 1
    typed, word = typed[begin:], word[begin:]
    swapped = typed[:2] == word[1::-1] and typed[2:] == word[2:]
    return 1 if swapped or typed[1:] == word[1:] or typed[1:] == word or typed == word[1:] else 2


def _parts(values: Sequence[str]) -> Iterator[Sequence[str]]:
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))
