"""A pattern with the words that it cannot do without."""

from __future__ import annotations

import re


class Phrase:
    """A pattern that is tried only where words that it cannot do without occur, which is quicker by far.

    ``needs`` are groups of beginnings of words, in lower case and separated by blanks (a blank inside one is written
    ``_``); of each group one must occur.
    """

    def __init__(self, needs: tuple[str, ...], pattern: str, flags: re.RegexFlag) -> None:
        self._needs = [[word.replace("_", " ") for word in group.split()] for group in needs]
        self._pattern = re.compile(pattern, flags)

    def may_occur(self, lower: str) -> bool:
        """Return whether ``lower``, a text in lower case, has the words that the phrase cannot do without."""
        return all(any(word in lower for word in group) for group in self._needs)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first place where the phrase occurs in ``text``, or None."""
        lower = text.lower()
        for group in self._needs:
            # No generator: this runs for every phrase and every sentence.
            for word in group:
                if word in lower:
                    break
            else:
                return None
        return self._pattern.search(text)
