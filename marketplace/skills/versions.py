"""Semantic versions: parse what a manifest declares, order versions, and choose the next one."""

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

_ASIDE: Final = re.compile(r"g[0-9a-f]{12}(?:\.\d+)?")


@total_ordering
class Version:
    """A semantic version, ordered as semver.org defines: ``1.0.0-rc.1`` before ``1.0.0`` before ``1.0.1``."""

    __slots__ = ("core", "pre")

    def __init__(self, core: tuple[int, int, int], pre: tuple[str, ...] = ()) -> None:
        """Keep major, minor and patch in ``core`` and the identifiers of the pre-release in ``pre``."""
        self.core = core
        self.pre = pre

    def __str__(self) -> str:
        bare = ".".join(map(str, self.core))
        return f"{bare}-{'.'.join(self.pre)}" if self.pre else bare

    def _order(self) -> tuple[Any, ...]:
        # Numbers sort below words, fewer identifiers below more, and a release above its pre-releases.
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
    """Return the version in a text, or ``None`` for no version; ``v1.2`` is 1.2.0, and build metadata is dropped."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return None
    pre = tuple(str(int(part)) if part.isdigit() else part for part in (match["pre"] or "").split(".") if part)
    return Version((int(match["major"]), int(match["minor"] or 0), int(match["patch"] or 0)), pre)


def highest(texts: Iterable[str]) -> str | None:
    """Return the text of the highest version, or ``None`` where there are no versions."""
    return max(texts, key=lambda text: parse_version(text) or Version((0, 0, 0)), default=None)


def choose_version(declared: str, taken: Iterable[str], *, aside: str = "") -> str:
    """Return the version of a new publication, which is never one of ``taken``, the versions published so far.

    It is the ``declared`` version where that is free, otherwise the next free patch after it. Without a declared
    version it is the patch after the highest version, or ``0.0.1`` for the first. ``aside`` is the id of a commit that
    is not the newest of the default branch, whose age nothing tells: anybody can submit an old one, so only a number
    that its author declared makes it the highest version. Otherwise its number is ``0.0.0-g`` and the beginning of the
    id, which stands below all others.
    """
    known = {version for text in taken if (version := parse_version(text)) is not None}
    wanted = parse_version(declared)
    is_declared = wanted is not None and wanted not in known
    if wanted is None:
        wanted = max(known).next_patch() if known else Version((0, 0, 1))
    while wanted in known:
        wanted = wanted.next_patch()
    if aside and known and not is_declared and wanted > max(known):
        wanted = Version((0, 0, 0), (f"g{aside[:12]}",))
        while wanted in known:
            wanted = Version((0, 0, 0), (*wanted.pre[:1], str(int(wanted.pre[-1]) + 1 if len(wanted.pre) > 1 else 2)))
    return str(wanted)


def is_aside(text: str) -> bool:
    """Tell whether a version's number is one that ``choose_version`` gives to a commit of unknown age."""
    version = parse_version(text)
    return version is not None and version.core == (0, 0, 0) and _ASIDE.fullmatch(".".join(version.pre)) is not None
