"""Refuse filters that no skill can pass because nothing here is called so, and say what there is."""

from __future__ import annotations

from typing import Final

from marketplace.errors import InvalidListing
from marketplace.judgement import KNOWN_VERDICTS
from marketplace.skills.agents import AGENTS
from marketplace.skills.count_reads import highest
from marketplace.skills.counts import CAPABILITY, VERDICT
from marketplace.skills.filtered import FilteredSkills
from vskill.hidden_characters import visible

_MOST_NAMED: Final = 40


def check_filters(found: FilteredSkills) -> None:
    """Raise ``InvalidListing`` where the verdict or the agent is unknown, or where no listed skill has the capability.

    A publisher, a licence, a tag and words to search for are chosen freely: what none has leaves an empty list. So does
    what none has where the counts that are kept are not those of whoever asks.
    """
    filters = found.filters
    if filters.verdict and filters.verdict not in KNOWN_VERDICTS and not _has(found, VERDICT):
        raise InvalidListing(
            f"There is no verdict {visible(filters.verdict, 40)!r}. It is one of: {', '.join(KNOWN_VERDICTS)}."
        )
    if filters.agent and filters.agent not in AGENTS:
        raise InvalidListing(f"There is no agent {visible(filters.agent, 40)!r}. It is one of: {', '.join(AGENTS)}.")
    if filters.capability and not _has(found, CAPABILITY):
        present = sorted(value for value, _count in highest(found.env, "", CAPABILITY, _MOST_NAMED))
        there = f"It is one of: {', '.join(visible(one, 40) for one in present)}." if present else "None has any."
        raise InvalidListing(f"No skill here asks for {visible(filters.capability, 40)!r}. {there}")


def _has(found: FilteredSkills, name: str) -> bool:
    return found.sees_more or bool(found.kept_count(name))
