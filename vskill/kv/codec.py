"""Encode and decode the JSON of the value column, and check keys."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from vskill.kv.errors import InvalidKey, InvalidValue

MAX_KEY_LENGTH: Final = 512
_LAST_CODE_POINT: Final = 0x10FFFF


def is_storable(text: str) -> bool:
    """Return whether every database can store ``text``: none stores a lone surrogate, PostgreSQL stores no NUL."""
    if text.isascii():
        return "\0" not in text
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def storable(text: str) -> str:
    """Return ``text`` with each character replaced that some database cannot store (see ``is_storable``)."""
    if is_storable(text):
        return text
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def check_key(key: str) -> str:
    """Return ``key`` unchanged; raise ``InvalidKey`` where it is empty, too long, or not storable everywhere."""
    if not key:
        raise InvalidKey("A key is a text that is not empty.")
    if len(key) > MAX_KEY_LENGTH:
        raise InvalidKey(f"A key has at most {MAX_KEY_LENGTH} characters; this one has {len(key)}.")
    if not is_storable(key):
        raise InvalidKey(f"A key has neither the NUL character nor half of a surrogate pair: {key!a}.")
    return key


def check_prefix(prefix: str) -> str:
    """Return ``prefix`` unchanged, which may be empty; raise ``InvalidKey`` where no valid key starts with it."""
    return check_key(prefix) if prefix else ""


_encoder: Final = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def encode(value: Any) -> str:
    """Return ``value`` as ASCII JSON; raise ``InvalidValue`` for what JSON cannot express (NaN, bytes, a cycle)."""
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"This value cannot be written as JSON: {error}") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_exact: Final = json.JSONDecoder(parse_constant=_refuse_constant)
_quick: Final = msgspec.json.Decoder()


def decode(text: str) -> Any:
    """Return the value of a JSON text; raise ``ValueError`` for any other text (the reader calls it malformed)."""
    if not isinstance(text, str):
        # SQLite stores bytes in a text column where another program wrote them.
        raise ValueError(f"a {type(text).__name__} and not a text")
    try:
        return _quick.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        # msgspec refuses a lone surrogate, which encode() writes, and its messages say less about what is wrong.
        return _decode_exactly(text)


def _decode_exactly(text: str) -> Any:
    try:
        return _exact.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def prefix_end(prefix: str) -> str | None:
    """Return the smallest text above every key that starts with ``prefix``, or ``None`` where there is none.

    UTF-8 bytes sort in the order of code points, so the last code point that has a successor is raised by one. The
    surrogates, which UTF-8 cannot encode, are skipped.
    """
    for position in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[position])
        if point < _LAST_CODE_POINT:
            following = point + 1
            if 0xD800 <= following <= 0xDFFF:
                following = 0xE000
            return prefix[:position] + chr(following)
    return None
