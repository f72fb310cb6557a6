"""A pattern with the words that it cannot do without."""

from __future__ import annotations

import re


class Phrase:
    """A pattern that is tried only where words that it cannot do without occur, which is quicker by far.

    ``needs`` are groups of beginnings of words, in lower case and separated by blanks (a blank inside one is written
    ``_``); of each group one must occur. ``is_possible`` is false for the phrase that occurs nowhere.
    """

    is_possible = True

    def __init__(self, needs: tuple[str, ...], pattern: str, flags: re.RegexFlag) -> None:
        self._needs = [[word.replace("_", " ") for word in group.split()] for group in needs]
        self._pattern = re.compile(pattern, flags)

    def may_occur(self, lower: str) -> bool:
        """Return whether ``lower``, a text in lower case, has the words that the phrase cannot do without."""
        for group in self._needs:
            # No generator: this runs for every phrase and every sentence.
            for word in group:
                if word in lower:
                    break
            else:
                return False
        return True

    def within(self, lower: str) -> Phrase:
        """Return what to search the sentences of a text for: this phrase, or one that occurs nowhere.

        ``lower`` is the text in lower case.
        """
        return self if self.may_occur(lower) else NOWHERE

    def search(self, text: str, lower: str = "") -> re.Match[str] | None:
        """Return the first place where the phrase occurs in ``text``, or None; ``lower`` is the same in lower case."""
        return self._pattern.search(text) if self.may_occur(lower or text.lower()) else None


class _Nowhere(Phrase):
    is_possible = False

    def search(self, text: str, lower: str = "") -> re.Match[str] | None:
        del text, lower
        return None


NOWHERE = _Nowhere((), "(?!)", re.NOFLAG)
"""The phrase that occurs in no text."""
