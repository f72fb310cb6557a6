"""Phrases of prose, and the words that they cannot do without, which are looked for in one pass for all of them."""

from __future__ import annotations

import re
from typing import Final

Words = int
"""A set of needed words, one bit each; ``ALL`` is the set of all."""
ALL: Final[Words] = -1

_LETTERS: Final = 3
# A longer one is a path, an address or encoded, and is searched for every word at once.
_LONGEST_TOKEN: Final = 60
_MOST_KNOWN: Final = 50_000


class _Index:
    """All words that phrases need: which of them a text holds is told token by token, and remembered of each token."""

    def __init__(self) -> None:
        self._bits: dict[str, Words] = {}
        self._by_letters: dict[str, list[tuple[str, Words]]] = {}
        self._short: list[tuple[str, Words]] = []
        self._of_tokens: dict[str, Words] = {}
        self.several: list[tuple[str, Words]] = []

    def bit(self, word: str) -> Words:
        """Return the bit of a word, which is looked for from now on."""
        if word not in self._bits:
            bit = self._bits[word] = 1 << len(self._bits)
            self._of_tokens.clear()
            if " " in word:
                self.several.append((word, bit))
            elif len(word) < _LETTERS:
                self._short.append((word, bit))
            else:
                self._by_letters.setdefault(word[:_LETTERS], []).append((word, bit))
        return self._bits[word]

    def of_tokens(self, lower: str) -> Words:
        """Return the needed words without blanks that occur in ``lower``."""
        words, known = 0, self._of_tokens
        for token in lower.split():
            found = known.get(token)
            words |= self._of_token(token) if found is None else found
        return words

    def _of_token(self, token: str) -> Words:
        words = 0
        for word, bit in self._short:
            if word in token:
                words |= bit
        if len(token) > _LONGEST_TOKEN:
            for several in self._by_letters.values():
                for word, bit in several:
                    if word in token:
                        words |= bit
            return words
        for at in range(len(token) - _LETTERS + 1):
            for word, bit in self._by_letters.get(token[at : at + _LETTERS], ()):
                if token.startswith(word, at):
                    words |= bit
        if len(self._of_tokens) > _MOST_KNOWN:
            self._of_tokens.clear()
        self._of_tokens[token] = words
        return words


_INDEX: Final = _Index()


def words_in(lower: str, among: Words = ALL) -> Words:
    """Return the needed words that occur in ``lower``, a text in lower case.

    Of those that are several words, separated by one blank, only the ones in the set ``among`` are looked for.
    """
    words = _INDEX.of_tokens(lower)
    for word, bit in _INDEX.several:
        if among & bit and word in lower:
            words |= bit
    return words


def needed(group: str) -> Words:
    """Return the set of the words in ``group``, which blanks separate; a blank inside one is written ``_``."""
    words = 0
    for word in group.split():
        words |= _INDEX.bit(word.replace("_", " "))
    return words


class Wording:
    """A pattern that is tried only where words that it cannot do without occur, which is quicker by far.

    ``needs`` are groups of beginnings of words, in lower case, as in ``needed``; of each group one must occur.
    ``is_possible`` is false for the phrase that occurs nowhere.
    """

    is_possible = True

    def __init__(self, needs: tuple[str, ...], pattern: str, flags: re.RegexFlag) -> None:
        self._needs = tuple(needed(group) for group in needs)
        self._pattern = re.compile(pattern, flags)

    def may_occur(self, words: Words) -> bool:
        """Return whether ``words`` has the words that the phrase cannot do without."""
        # No generator: this runs for every phrase and every sentence.
        for group in self._needs:  # noqa: SIM110
            if not words & group:
                return False
        return True

    def within(self, words: Words) -> Wording:
        """Return what to search the sentences of a text with these ``words`` for: this, or what occurs nowhere."""
        return self if self.may_occur(words) else NOWHERE

    def search(self, text: str, words: Words = ALL) -> re.Match[str] | None:
        """Return the first place where the phrase occurs in ``text``, or None; ``words`` are those of the text."""
        for group in self._needs:
            if not words & group:
                return None
        return self._pattern.search(text)


class _Nowhere(Wording):
    is_possible = False

    def search(self, text: str, words: Words = ALL) -> re.Match[str] | None:
        del text, words
        return None


NOWHERE: Final = _Nowhere((), "(?!)", re.NOFLAG)
"""The phrase that occurs in no text."""
