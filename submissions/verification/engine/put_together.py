"""Write out what PowerShell, its older sister and Perl put together of constants, so that it is read as what it is."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from typing import Final

_LONGEST: Final = 100_000
_QUOTED: Final = r"'(?:[^'\n]|''){0,4000}'|\"[^\"\n$]{0,4000}\""
_LIST: Final = rf"(?:{_QUOTED})(?:\s{{0,20}},\s{{0,20}}(?:{_QUOTED})){{0,500}}"
_CODE: Final = r"(?:0x[0-9a-fA-F]{2}|\d{1,3})"
_CODES: Final = rf"(?:\[char\]\s?)?{_CODE}(?:\s{{0,10}}[,+]\s{{0,10}}(?:\[char\]\s?)?{_CODE}){{3,4000}}"
# Marks and carets within words mean nothing to the shells of Windows.
_TICK: Final = re.compile(r"(?<=\w)[`^](?=[A-Za-z])|(?<=[ (|&;])[`^](?=[A-Za-z])")
_FORMAT: Final = re.compile(rf"\(?\s{{0,10}}({_QUOTED})\s{{0,10}}-f\s{{0,10}}({_LIST})\s{{0,10}}\)?", re.IGNORECASE)
_JOIN: Final = re.compile(
    rf"-join\s{{0,10}}\(\s{{0,10}}(?:@?\()?({_LIST})\)?\s{{0,10}}\)?"
    rf"|@?\(\s{{0,10}}({_LIST})\s{{0,10}}\)\s{{0,10}}-join\s{{0,10}}(?:''|\"\")",
    re.IGNORECASE,
)
_CHARACTERS: Final = re.compile(rf"(?:\[char\[\]\]\s?)?@?\(?\s{{0,10}}(?<![\w.]){_CODES}\s{{0,10}}\)?", re.IGNORECASE)
_ADDED: Final = re.compile(rf"({_QUOTED})\s{{0,10}}\+\s{{0,10}}(?=['\"])")
_ITEM: Final = re.compile(_QUOTED)
_NUMBER: Final = re.compile(_CODE)
_PLACE: Final = re.compile(r"\{(\d{1,3})\}")
_CALLED: Final = re.compile(r"([&.]\s?|::)\(\s{0,10}['\"]([\w.-]{2,60})['\"]\s{0,10}\)")
_MEMBER: Final = re.compile(r"\.['\"]([A-Za-z]\w{1,60})['\"](?=\s?[(.])|\.Invoke(?=\()")
_TURNS: Final = re.compile(r"\.\.\s?-?0\]|\[-1\s?\.\.|\[array\]::Reverse", re.IGNORECASE)
_HOLDS: Final = (
    "`",
    "^",
    "-f",
    "-F",
    "join",
    "Join",
    "JOIN",
    "[char",
    "[Char",
    "[CHAR",
    "'+",
    "' +",
    '"+',
    '" +',
    "..",
)
_UNPACKED: Final = re.compile(
    r"\bunpack\s{0,5}\(?\s{0,5}(?:'u'|\"u\"|q.u.)\s{0,5},\s{0,5}"
    r"(?:q\{([^}]{1,8000})\}|'([^']{1,8000})'|\"([^\"]{1,8000})\")"
)


def put_together(text: str, language: str) -> Iterator[str]:
    """Yield what constants in ``text`` make, as code of ``language``: PowerShell (with batch files) or Perl."""
    if language == "perl":
        for match in _UNPACKED.finditer(text, 0, _LONGEST):
            yield from _uudecoded(match[1] or match[2] or match[3])
        return
    if not any(one in text for one in _HOLDS):
        return
    text = text[:_LONGEST]
    made: list[str] = []

    def constant(value: str) -> str:
        made.append(value)
        return "'" + value.replace("'", "''") + "'"

    whole = _TICK.sub("", text)
    whole = _CHARACTERS.sub(lambda match: constant(_characters(match[0])) if _is_marked(match) else match[0], whole)
    whole = _FORMAT.sub(lambda match: constant(_formatted(match[1], match[2])), whole)
    whole = _JOIN.sub(lambda match: constant("".join(_items(match[1] or match[2]))), whole)
    joined = _added(whole)
    if joined != whole:
        made += [one for one in _items(joined) if len(one) > 12]
    plain = _MEMBER.sub(lambda match: "." + match[1] if match[1] else "", _CALLED.sub(_name, joined))
    if _TURNS.search(plain) is not None:
        made += [one[::-1] for one in _items(plain) if len(one) > 12]
    if plain != text:
        yield plain
    # What a constant holds may be given to Invoke-Expression.
    yield from (one for one in dict.fromkeys(made) if len(one) > 12)


def _name(match: re.Match[str]) -> str:
    return match[2] if match[1].startswith("&") else match[1] + match[2]


def _is_marked(match: re.Match[str]) -> bool:
    """Return whether numbers are told to be characters, there or right behind them."""
    behind = match.string[match.end() : match.end() + 60]
    return "char" in match[0].lower() or re.match(r"[\s)]{0,5}\|[^\n]{0,30}\[char\]", behind, re.IGNORECASE) is not None


def _added(text: str) -> str:
    """Return ``text`` with constants that are added written as one."""
    pieces: list[str] = []
    end = 0
    for match in _ADDED.finditer(text):
        pieces += [text[end : match.start()], match[1][:-1]]
        # The next one begins with a mark of its own, which is left out.
        end = match.end() + 1
    return "".join([*pieces, text[end:]])


def _items(text: str) -> list[str]:
    return [one[1:-1].replace("''", "'") for one in _ITEM.findall(text)]


def _characters(text: str) -> str:
    return "".join(chr(number) for one in _NUMBER.findall(text) if (number := int(one, 0 if "x" in one else 10)) >= 9)


def _formatted(pattern: str, values: str) -> str:
    held = _items(values)
    return _PLACE.sub(lambda match: held[int(match[1])] if int(match[1]) < len(held) else "", pattern[1:-1])


def _uudecoded(text: str) -> Iterator[str]:
    try:
        made = b"".join(binascii.a2b_uu(line) for line in text.split("\n") if line.strip())
    except binascii.Error:
        return
    yield made.decode("utf-8", "replace")
