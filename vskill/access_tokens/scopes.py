"""What a token may be made for."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from vskill.errors import VskillError


class UnknownScope(VskillError):
    """A scope that there is none of; nothing was made."""

    code = "unknown_scope"


class Scope(StrEnum):
    """A kind of work that a token permits, as far as its owner may do it; each token permits to read."""

    READ = "read"
    SUBMIT = "submit"
    PUBLISH = "publish"
    REVIEW = "review"
    OPERATE = "operate"


MEANINGS: Final = {
    Scope.READ: "read what its owner may read",
    Scope.SUBMIT: "submit repositories, ask for another scan",
    Scope.PUBLISH: "upload skills",
    Scope.REVIEW: "decide about what is held",
    Scope.OPERATE: "do what operators do",
}


def scopes_of(names: Iterable[str]) -> frozenset[Scope]:
    """Return the scopes of these names, and ``read``, without which nothing else is of use; raise ``UnknownScope``."""
    found = {Scope.READ}
    for name in names:
        if name not in MEANINGS:
            raise UnknownScope(f"There is no scope {name[:40]!r}. There are: {', '.join(Scope)}. Nothing was made.")
        found.add(Scope(name))
    return frozenset(found)


def as_text(scopes: Iterable[Scope]) -> str:
    """Return scopes as they are stored and shown: their names in the order of ``Scope``, with spaces between."""
    chosen = set(scopes)
    return " ".join(scope for scope in Scope if scope in chosen)
