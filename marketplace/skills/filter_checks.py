"""Refuse filters that no skill can pass because nothing here is called so, and say what there is."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from marketplace.errors import InvalidListing
from marketplace.judgement import KNOWN_VERDICTS
from marketplace.skills.agents import AGENTS
from marketplace.skills.count_reads import counts_of, highest
from marketplace.skills.counts import CAPABILITY, VERDICT
from marketplace.skills.filtered import SkillFilters
from marketplace.skills.visibility import sees_more
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.kv.codec import is_storable

_MOST_NAMED: Final = 40


def check_filters(env: WorkerEnv, filters: SkillFilters) -> None:
    """Raise ``InvalidListing`` where the verdict or the agent is unknown, or where no listed skill has the capability.

    A publisher, a licence, a tag and words to search for are chosen freely: what none has leaves an empty list.
    """
    if sees_more(env):
        # The counts that are kept are those of public skills: what none has leaves an empty list.
        filters = replace(filters, capability="", verdict="")
    if filters.verdict and filters.verdict not in KNOWN_VERDICTS and not _has(env, VERDICT, filters.verdict):
        raise InvalidListing(
            f"There is no verdict {visible(filters.verdict, 40)!r}. It is one of: {', '.join(KNOWN_VERDICTS)}."
        )
    if filters.agent and filters.agent not in AGENTS:
        raise InvalidListing(f"There is no agent {visible(filters.agent, 40)!r}. It is one of: {', '.join(AGENTS)}.")
    if filters.capability and not _has(env, CAPABILITY, filters.capability):
        present = sorted(value for value, _count in highest(env, "", CAPABILITY, _MOST_NAMED))
        there = f"It is one of: {', '.join(visible(one, 40) for one in present)}." if present else "None has any."
        raise InvalidListing(f"No skill here asks for {visible(filters.capability, 40)!r}. {there}")


def _has(env: WorkerEnv, kind: str, value: str) -> bool:
    key = ("", kind, value)
    return is_storable(value) and counts_of(env, [key])[key] > 0
