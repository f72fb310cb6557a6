"""Read what a text in another language than English asks of an agent: to send, to hide, to obey, to drop its rules."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from submissions.verification.engine.asks import place_of
from submissions.verification.engine.hosts import URL
from submissions.verification.engine.parts import Part, Sign
from submissions.verification.engine.sentences import Sentence
from submissions.verification.engine.values import labels_of_path

_NEAR: Final = 3
_BEFORE: Final = 40
# Quick tests for a language at all: letters that English lacks, or small words that it lacks.
_OTHER_LETTERS: Final = re.compile(r"[\u0400-\u04ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_OTHER_WORDS: Final = frozenset({
    "und", "oder", "nicht", "der", "die", "das", "ein", "eine", "le", "les", "des", "une", "pas", "vous", "tu",
    "el", "los", "las", "un", "una", "que", "para", "con", "nao", "não", "um", "uma", "os", "il", "gli", "non",
    "che", "het", "een", "niet", "nie", "jest", "ve", "bir", "ile", "em", "di", "al", "dei", "questo", "prima",
    "lo", "da", "de", "la", "et", "dans", "pour", "per", "su", "del", "della",
})  # fmt: skip
_WORD: Final = re.compile(r"\w+")
_MARKS: Final = re.compile(r"[\u0300-\u036f]")


@dataclass(frozen=True)
class _Tongue:
    latin: bool
    send: re.Pattern[str]
    hide: re.Pattern[str]
    obey: re.Pattern[str]
    drop: re.Pattern[str]
    negated: re.Pattern[str]


@cache
def _tongues() -> tuple[_Tongue, ...]:
    table = tomllib.loads(Path(__file__).with_name("tongues.toml").read_text(encoding="utf-8"))
    return tuple(
        _Tongue(
            one["letters"] == "latin",
            *(re.compile(one[name], re.IGNORECASE) for name in ("send", "hide", "obey", "drop", "not")),
        )
        for one in table.values()
    )


def is_foreign(text: str) -> bool:
    """Return whether a text may be in another language than English: it has letters or several words of one."""
    if _has_other_letters(text):
        return True
    found = 0
    for token in text[:20_000].lower().split():
        found += _other_words(token)
        if found >= 2:
            return True
    return False


@lru_cache(maxsize=20_000)
def _other_words(token: str) -> int:
    """Return how many words that English lacks are in a word with what stands around it."""
    return sum(word in _OTHER_WORDS for word in _WORD.findall(token))


def _has_other_letters(text: str) -> bool:
    return not text.isascii() and _OTHER_LETTERS.search(text) is not None


def foreign_signs(part: Part, said: Sequence[Sentence]) -> Iterator[Sign]:
    """Yield what the sentences of a part ask for in a language that the readers of English do not know."""
    other = _has_other_letters(part.text)
    plain = [_plain(one.text) for one in said]
    bare = [URL.sub(" (address) ", one) if "://" in one else one for one in plain]
    places = [place_of(one.text) for one in said]
    for tongue in _tongues():
        if tongue.latin or other:
            yield from _signs(part, said, (plain, bare, places), tongue)


def _plain(text: str) -> str:
    """Return ``text`` in lower case and with its letters without accents."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", text))).lower()


def _signs(
    part: Part, said: Sequence[Sentence], known: tuple[Sequence[str], Sequence[str], Sequence[str]], tongue: _Tongue
) -> Iterator[Sign]:
    plain, bare, places = known
    anywhere = any(places)
    for index, one in enumerate(said):
        text = bare[index]
        if (found := tongue.drop.search(text)) is not None and not _negated(text, found, tongue):
            yield _at("rules-overridden", part, one)
        if not anywhere:
            continue
        around = range(max(0, index - _NEAR), min(len(said), index + _NEAR + 1))
        place = next((places[near] for near in around if places[near]), "")
        if (found := tongue.obey.search(text)) is not None and place and not _negated(text, found, tongue):
            yield _at("instructions-fetched", part, one, place)
        found = tongue.send.search(text)
        if found is None or _negated(text, found, tongue) or not place:
            continue
        if any(labels_of_path(said[near].text) for near in around):
            yield _at("secret-sent-by-agent", part, one, place)
        if any(tongue.hide.search(plain[near]) for near in around):
            yield _at("hidden-from-user", part, one, "sends")
        elif places[index]:
            yield _at("data-sent-unasked", part, one, place)


def _negated(text: str, found: re.Match[str], tongue: _Tongue) -> bool:
    return tongue.negated.search(text, max(0, found.start() - _BEFORE), found.end() + 8) is not None


def _at(name: str, part: Part, one: Sentence, detail: str = "") -> Sign:
    return Sign(name, part, part.line + (0 if part.origin else one.line), one.text[:240], detail)
