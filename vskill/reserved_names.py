"""The names that an environment reserves for owners: read from the settings, and compared as a person would read them.

A name is compared by what it looks like: in lower case, with letters of other scripts, wide ones and accents read as
the plain letters that they resemble, without characters that nobody sees, and with 0 and 1 read as o and l. There are
more letters than any table of those that look alike has, so one that is in none stands for any character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured

from vskill.hidden_characters import escape_hidden

_PATTERN: Final = re.compile(r"(?=.*[a-z0-9])[a-z0-9*-]{1,64}")
_OWNER: Final = re.compile(r"(?P<host>[a-z0-9._-]*|\[[0-9a-f:.]+\])(:[0-9]{1,5})?(/[^\s/@?#]+)+/?")
# Each star may stand anywhere in a name, so many of them would take long to compare.
_MOST_STARS: Final = 4
# The small letters of Cyrillic, Greek, Armenian and others that look like a plain one (Unicode TR 39), after NFKD and
# case folding, which read wide letters, those of mathematics and accents already.
_LOOKALIKES: Final = str.maketrans(
    {
        **dict.fromkeys("\u0430\u0251\u03b1", "a"),
        **dict.fromkeys("\u0432\u044c\u0184\u0185", "b"),
        **dict.fromkeys("\u0441\u03f2\u1d04\ua4da", "c"),
        **dict.fromkeys("\u0501\u0257\u0111", "d"),
        **dict.fromkeys("\u0435\u04bd\u0454\u03b5", "e"),
        **dict.fromkeys("\u0192\u0584", "f"),
        **dict.fromkeys("\u0261\u0581\u018d", "g"),
        **dict.fromkeys("\u04bb\u0570\u043d", "h"),
        **dict.fromkeys("\u0456\u0131\u03b9\u0269\u1d85", "i"),
        **dict.fromkeys("\u0458\u03f3", "j"),
        **dict.fromkeys("\u043a\u03ba\u0138", "k"),
        **dict.fromkeys("\u04cf\u01c0\u0142\u2113", "l"),
        **dict.fromkeys("\u043c\u028d", "m"),
        **dict.fromkeys("\u0578\u057c\u043f\u03b7", "n"),
        **dict.fromkeys("\u043e\u03bf\u0585\u03c3\u00f8\u1d0f", "o"),
        **dict.fromkeys("\u0440\u03c1", "p"),
        **dict.fromkeys("\u051b\u0563\u0566", "q"),
        **dict.fromkeys("\u0433\u1d26\u0280", "r"),
        **dict.fromkeys("\u0455\u01bd\ua731", "s"),
        **dict.fromkeys("\u0442\u03c4\u1d1b", "t"),
        **dict.fromkeys("\u057d\u03c5\u028b\u1d1c", "u"),
        **dict.fromkeys("\u0475\u03bd\u1d20", "v"),
        **dict.fromkeys("\u051d\u0461\u03c9\u1d21", "w"),
        **dict.fromkeys("\u0445\u03c7\u00d7", "x"),
        **dict.fromkeys("\u0443\u04af\u03b3\u028f", "y"),
        **dict.fromkeys("\u1d22\u0225", "z"),
    }
)
# Stands for a character that may look like any other; nobody can write it, since it is private.
_UNKNOWN: Final = "\ue000"
_DIGITS: Final = str.maketrans("01", "ol")


@dataclass(frozen=True)
class ReservedName:
    """A pattern of names, and who alone may take them.

    ``pattern`` has small letters, digits, hyphens, and ``*`` for any part of a name. ``owners`` are ``host/owner`` or
    ``host/owner/subgroup``, or ``/folder`` for repositories on this machine.
    """

    pattern: str
    owners: tuple[str, ...]

    def covers(self, name: str) -> bool:
        """Return whether ``name`` is one of these, or looks like one to a person who reads it."""
        return any(_covers(self.pattern, look) for look in {look_of(name), _look(name, unknown=_UNKNOWN)})


def _covers(pattern: str, look: str) -> bool:
    """Return whether a pattern fits a look: each part at the first place where it does, which takes no long search."""
    first, *others = _parts(pattern)
    if not others:
        return first.fullmatch(look) is not None
    end = 0
    for find in (first.match, *(one.search for one in others)):
        found = find(look, end)
        if found is None:
            return False
        end = found.end()
    return True


@lru_cache(maxsize=1000)
def _parts(pattern: str) -> tuple[re.Pattern[str], ...]:
    """Return what fits each part of a pattern between stars; what is unknown at the ends of a name may be a sign."""
    parts = ["".join(f"[{re.escape(one)}{_UNKNOWN}]" for one in part) for part in pattern.translate(_DIGITS).split("*")]
    parts[0] = f"[-{_UNKNOWN}]*?{parts[0]}"
    parts[-1] = rf"{parts[-1]}[-{_UNKNOWN}]*\Z"
    return tuple(re.compile(one) for one in parts)


def look_of(name: str) -> str:
    """Return ``name`` as it looks: plain small letters, digits and hyphens; equal for names that look alike.

    What is no letter and no digit is one hyphen, and at the ends nothing.
    """
    return _look(name, unknown="-")


def _look(name: str, *, unknown: str) -> str:
    """Return how a name looks, with ``unknown`` for each character that may look like a letter that no table has."""
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    text = escape_hidden("".join(one for one in text if unicodedata.category(one) not in _UNSEEN), lambda _one: "")
    text = "".join(unknown if _may_be_a_letter(one) else one for one in text.translate(_LOOKALIKES))
    return re.sub(rf"[^a-z0-9{_UNKNOWN}]+", "-", text).strip("-").translate(_DIGITS)


def _may_be_a_letter(character: str) -> bool:
    """Return whether a character that stands for no plain one may be read as one: no ideograph and no emoji is."""
    if character.isascii():
        return False
    return unicodedata.category(character)[0] in "LNS" and unicodedata.east_asian_width(character) != "W"


# Marks, which are accents once a letter is taken apart, and format characters.
_UNSEEN: Final = frozenset({"Mn", "Me", "Cf"})


def read_reserved_names(name: str, value: Any) -> tuple[ReservedName, ...]:
    """Return what ``reserved_names`` of the environment ``name`` describes; raise ``ImproperlyConfigured``."""
    if not isinstance(value, Mapping):
        raise _fault(name, f"maps a pattern of names to its owner, host/owner; it was {value!r}")
    return tuple(_reserved(name, pattern, owners) for pattern, owners in value.items())


def _reserved(name: str, pattern: Any, value: Any) -> ReservedName:
    pattern = str(pattern)
    if not _PATTERN.fullmatch(pattern) or pattern.count("*") > _MOST_STARS:
        raise _fault(
            name,
            f"has the pattern {pattern!r}; one has small letters, digits, hyphens and at most {_MOST_STARS} stars, "
            "at least one letter or digit, and at most 64 characters",
        )
    owners = (value,) if isinstance(value, str) else value
    if not isinstance(owners, (list, tuple)) or not owners or not all(isinstance(one, str) for one in owners):
        raise _fault(name, f"maps {pattern!r} to {value!r}, which is no host/owner and no list of them")
    return ReservedName(pattern, tuple(_owner(name, pattern, owner) for owner in owners))


def _owner(name: str, pattern: str, written: str) -> str:
    host, slash, path = written.strip().partition("/")
    owner = f"{host.lower()}{slash}{path}".rstrip("/")
    if not _OWNER.fullmatch(owner):
        raise _fault(
            name, f"gives {pattern!r} to {written!r}, which is no host/owner (without https:// and without a user)"
        )
    return owner


def _fault(name: str, what: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"VSKILL_ENVIRONMENTS: 'reserved_names' of {name!r} {what}.")
