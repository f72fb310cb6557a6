"""Decode constants that hide text: base64, base32, hexadecimal, escapes, rotated and reversed letters."""

from __future__ import annotations

import base64
import binascii
import codecs
import gzip
import html
import re
import urllib.parse
import zlib
from collections.abc import Iterator
from typing import Final

from submissions.verification.engine.normal import with_newlines

MAX_TEXT: Final = 40_000
_BASE64: Final = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{20,60000}={0,2}(?![A-Za-z0-9+/=])")
_HEX: Final = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{2}){12,30000}(?![0-9A-Za-z])")
_ESCAPES: Final = re.compile(r"(?:\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[0-7]{3}){6,20000}")
_ESCAPE: Final = re.compile(r"\\x([0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\([0-7]{3})")
_PERCENT: Final = re.compile(r"(?:%[0-9a-fA-F]{2}[\w./:-]{0,3}){8,5000}")
_ENTITIES: Final = re.compile(r"(?:&#x?[0-9a-fA-F]{2,6};){8,5000}")
_CODES: Final = re.compile(
    r"(?:\b(?:0x[0-9a-fA-F]{2}|\d{2,3})\b\s{0,4},\s{0,20}){10,5000}(?:0x[0-9a-fA-F]{2}|\d{2,3})\b"
)
# Between two of them.
_AMONG_CODES: Final = re.compile(r",\s{0,20}(?:0x[0-9a-fA-F]{2}|\d{2,3})\s{0,4},")
_SHORTEST: Final = 20
_CODE: Final = re.compile(r"0x[0-9a-fA-F]{2}|\d{2,3}")
_TELLING: Final = re.compile(
    r"https?://|\bcurl\b|\bwget\b|/bin/|\bimport \w|\bexec\b|\beval\b|\bbash\b|\bsystem\b|/etc/|\.ssh"
    r"|powershell|subprocess|\brequire\(|ignore |environ",
    re.IGNORECASE,
)


def decoded_texts(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the place of each constant that decodes to text, the way, and the text; in order of the ways."""
    # Most texts have no word that is long enough, and are not searched for each way.
    words = list(_long_words(text))
    for pattern, way, decode, mark in _WAYS:
        for start, word in words:
            for match in pattern.finditer(word) if mark in word else ():
                if (value := decode(match[0])) is not None and is_text(value := with_newlines(value)):
                    yield start + match.start(), way, value[:MAX_TEXT]
    for match in _CODES.finditer(text) if _AMONG_CODES.search(text) is not None else ():
        value = _codes(match[0])
        if value is not None and is_text(value):
            yield match.start(), "character codes", value[:MAX_TEXT]


def _long_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the words that are as long as what any way begins with, each with its place."""
    end = 0
    for word in text.split():
        if len(word) >= _SHORTEST:
            start = text.index(word, end)
            end = start + len(word)
            yield start, word


def decode_base64(text: str) -> str | None:
    """Return what base64 stands for, uncompressed where it is compressed, or None."""
    text = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    if len(text) % 4 == 1:
        return None
    try:
        return _as_text(base64.b64decode(text + "=" * (-len(text) % 4), validate=True))
    except (binascii.Error, ValueError):
        return None


def decode_hex(text: str) -> str | None:
    """Return what hexadecimal digits stand for, or None."""
    try:
        return _as_text(bytes.fromhex(text))
    except ValueError:
        return None


def rotated(text: str) -> str:
    """Return ``text`` with its letters moved by thirteen."""
    return codecs.encode(text, "rot13")


def is_telling(text: str) -> bool:
    """Return whether a text holds words of code, commands or addresses."""
    return _TELLING.search(text) is not None


def is_wording(text: str) -> bool:
    """Return whether a text is made of words, as instructions are."""
    return len(text) >= 60 and text.count(" ") > len(text) // 12 and sum(map(str.isalpha, text)) > len(text) // 2


def is_text(value: str) -> bool:
    """Return whether a decoded value is something that a person or a program reads."""
    return len(value) >= 6 and sum(one.isprintable() or one in "\n\t" for one in value[:400]) >= 0.97 * len(value[:400])


def _as_text(data: bytes) -> str | None:
    if data[:2] in (b"x\x9c", b"x\xda", b"\x1f\x8b") and len(data) > 12:
        data = _inflated(data) or data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return _wide(data)


def _wide(data: bytes) -> str | None:
    # PowerShell encodes commands in two bytes a letter.
    if len(data) % 2 == 0 and data[1::2].count(0) > len(data) // 3:
        return data.decode("utf-16-le", "replace")
    return None


def _inflated(data: bytes) -> bytes | None:
    try:
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data[:MAX_TEXT])[:MAX_TEXT] if len(data) < 4096 else None
        return zlib.decompressobj().decompress(data, MAX_TEXT)
    except (OSError, EOFError, zlib.error):
        return None


def _escapes(text: str) -> str:
    return _ESCAPE.sub(
        lambda match: chr(int(match[1] or match[2], 16) if match[1] or match[2] else int(match[3], 8)), text
    )


def _codes(text: str) -> str | None:
    numbers = [int(one, 0) for one in _CODE.findall(text) if not (one.startswith("0") and one.isdigit())]
    return "".join(map(chr, numbers)) if all(9 <= one < 127 for one in numbers) else None


# Each with what a word cannot do without.
_WAYS: Final = (
    (_BASE64, "base64", decode_base64, ""),
    (_HEX, "hexadecimal", decode_hex, ""),
    (_ESCAPES, "escapes", _escapes, "\\"),
    (_PERCENT, "percent signs", urllib.parse.unquote, "%"),
    (_ENTITIES, "entities", html.unescape, "&#"),
)
