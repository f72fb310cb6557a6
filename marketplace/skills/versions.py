"""Semantic versions: read what a manifest declares, order versions, and name the next one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import total_ordering
from typing import Any, Final

_VERSION: Final = re.compile(
    r"v?(?P<major>\d{1,9})(?:\.(?P<minor>\d{1,9}))?(?:\.(?P<patch>\d{1,9}))?"
    r"(?:-(?P<pre>[0-9A-Za-z-]{1,32}(?:\.[0-9A-Za-z-]{1,32}){0,4}))?(?:\+[0-9A-Za-z.-]{1,64})?",
    re.ASCII,
)


@total_ordering
class Version:
    """A semantic version in the order of semver.org: ``1.0.0-rc.1`` before ``1.0.0`` before ``1.0.1``."""

    __slots__ = ("core", "pre")

    def __init__(self, core: tuple[int, int, int], pre: tuple[str, ...] = ()) -> None:
        self.core = core
        self.pre = pre

    def __str__(self) -> str:
        bare = ".".join(map(str, self.core))
        return f"{bare}-{'.'.join(self.pre)}" if self.pre else bare

    def _order(self) -> tuple[Any, ...]:
        # A number is below a word, fewer parts are below more, and no pre-release at all is above any.
        parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre)
        return (self.core, not self.pre, parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._order() == other._order()

    def __lt__(self, other: Version) -> bool:
        return self._order() < other._order()

    def __hash__(self) -> int:
        return hash(self._order())

    def next_patch(self) -> Version:
        """Return the version after this one: the same without its pre-release part, or one patch higher."""
        major, minor, patch = self.core
        return Version(self.core) if self.pre else Version((major, minor, patch + 1))


def parse_version(text: str) -> Version | None:
    """Return the version that a text means, or ``None``; ``v1.2`` means 1.2.0, build metadata is left out."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return None
    pre = tuple(str(int(part)) if part.isdigit() else part for part in (match["pre"] or "").split(".") if part)
    return Version((int(match["major"]), int(match["minor"] or 0), int(match["patch"] or 0)), pre)


def highest(texts: Iterable[str]) -> str | None:
    """Return the highest of some versions as it was written, or ``None`` for none."""
    return max(texts, key=lambda text: parse_version(text) or Version((0, 0, 0)), default=None)


def choose_version(declared: str, taken: Iterable[str]) -> str:
    """Return the version of a new publication.

    What the manifest declares, where it is a version that has no other content yet. A version that was published
    before is never given to other content: that one, and content without a version, get the next patch (``0.0.1`` at
    first).
    """
    known = {version for text in taken if (version := parse_version(text)) is not None}
    wanted = parse_version(declared)
    if wanted is None:
        wanted = max(known).next_patch() if known else Version((0, 0, 1))
    while wanted in known:
        wanted = wanted.next_patch()
    return str(wanted)
