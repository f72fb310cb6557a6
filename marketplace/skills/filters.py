"""What a list of skills is filtered by, and how many skills there are of something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from marketplace.skills.capability_names import name_of


@dataclass(frozen=True)
class SkillFilters:
    """The filters of a list; an empty one does not filter.

    ``query`` are words to search for, ``publisher`` is a handle or a short one, ``verdict``, ``license``, ``tag``,
    ``capability`` and ``agent``, one that the skill states it is made for, match exactly, and ``prefix`` is the
    beginning of a slug. A capability by the name that an engine has for it is the one that lists have.
    """

    query: str = ""
    publisher: str = ""
    verdict: str = ""
    license: str = ""
    tag: str = ""
    capability: str = ""
    prefix: str = ""
    agent: str = ""

    def __post_init__(self) -> None:
        """Name the capability as lists do, so that the addresses of an earlier release still lead there."""
        object.__setattr__(self, "capability", name_of(self.capability))


EVERY_SKILL: Final = SkillFilters()


class HowMany(NamedTuple):
    """A count; with ``or_more`` it is the least that there are."""

    number: int
    or_more: bool = False


class FacetValue(NamedTuple):
    """A value of a facet and how many skills have it; with ``or_more`` that is the least that there are.

    Without a ``number`` it is one that many of all skills have, and nobody counted those of this list.
    """

    value: str
    number: int | None
    or_more: bool = False
