"""Turn texts into the tokens of the index, and queries into terms.

An engine gets only what this module made: letters and digits. Nothing of a query reaches it as an operator.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Final

MAX_QUERY_TERMS: Final = 8
MAX_TOKEN_LENGTH: Final = 40

# Words where there is nothing but ASCII in lower case, which most texts are, in a tenth of the time.
_WORD_IN_ASCII: Final = re.compile(r"[a-z0-9]+")
# Scripts that are indexed by character pairs. Chinese and Japanese, Thai, Lao, Burmese and Khmer, Javanese, Balinese
# and the scripts of the Tai peoples have no spaces between words, and in Hangul, which has them, endings are glued to
# the word. Tibetan has a sign between syllables, which are its words here.
_UNSPACED: Final = re.compile(
    r"[\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\u0e00-\u0eff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\uaa80-\uaadf\ua980-\ua9df"
    r"\u1b00-\u1b7f\U00020000-\U0003ffff]+"
)


@cache
def _word() -> re.Pattern[str]:
    """Return what a word is in any script; made when it is needed: commands would wait for it at each start."""
    # Vowel signs of many scripts are marks, which Python counts to no word.
    marks = "".join(chr(one) for one in range(0x300, 0x11FFF) if unicodedata.category(chr(one)) in ("Mn", "Mc"))
    return re.compile(rf"(?:[^\W_][{re.escape(marks)}]*)+")


def _normalised(text: str) -> str:
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.encode(errors="replace").decode()


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each word, and whether it is a run of characters that ``_UNSPACED`` matches."""
    plain = _normalised(text)
    for word in (_WORD_IN_ASCII if plain.isascii() else _word()).findall(plain):
        if word.isascii():
            yield word, False
            continue
        end = 0
        for run in _UNSPACED.finditer(word):
            if before := word[end : run.start()]:
                yield before, False
            yield run.group(), True
            end = run.end()
        if rest := word[end:]:
            yield rest, False


def tokenize(text: str) -> list[str]:
    """Return the tokens of a text for the index: words, or characters and pairs of scripts without spaces."""
    tokens: list[str] = []
    for word, is_unspaced in _words(text):
        if is_unspaced:
            tokens += word
            tokens += _pairs(word)
        else:
            tokens.append(word[:MAX_TOKEN_LENGTH])
    return tokens


def _pairs(word: str) -> list[str]:
    return [word[start : start + 2] for start in range(len(word) - 1)]


def query_terms(query: str) -> list[str]:
    """Return the distinct terms of a query, at most ``MAX_QUERY_TERMS``; each has to be the prefix of a token."""
    return _split(query)[0]


def words_left_out(query: str) -> tuple[str, ...]:
    """Return the words of a query that ``query_terms`` has no room for, each once."""
    return _split(query)[1]


def _split(query: str) -> tuple[list[str], tuple[str, ...]]:
    terms: dict[str, None] = {}
    left_out: dict[str, None] = {}
    for word, is_unspaced in _words(query):
        parts = _pairs(word) if is_unspaced and len(word) > 1 else [word]
        for place, part in enumerate(parts):
            if len(terms) == MAX_QUERY_TERMS and part[:MAX_TOKEN_LENGTH] not in terms:
                # Of a text without spaces, what comes before is searched for.
                left_out[word[place:]] = None
                break
            terms[part[:MAX_TOKEN_LENGTH]] = None
    return list(terms), tuple(left_out)
