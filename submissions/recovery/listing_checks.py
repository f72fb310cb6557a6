"""Look for skills that are listed by something else than they say, and mend each in a transaction of its own."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from marketplace.skills.capability_renewal import lock_skill, renew_capabilities, wrong_capabilities
from marketplace.skills.counts import Facet
from marketplace.skills.facet_check import facets_not_counted, mend_facets, wrong_facets
from submissions.recovery.problems import Kind, Mends, Problem
from vskill.environments import WorkerEnv


def capability_problems(env: WorkerEnv) -> list[tuple[Problem, Mends]]:
    """Return that skills are listed by other capabilities than their latest version has, if any are."""
    wrong = wrong_capabilities(env)
    if not wrong:
        return []
    detail = f"{len(wrong)} skills are listed by something else than their latest version can do"
    problem = Problem(Kind.CAPABILITIES, "capabilities of skills", detail)
    return [(problem, [partial(_renew, number=number) for number in wrong])]


def _renew(env: WorkerEnv, number: int) -> str:
    renew_capabilities(env, lock_skill(env, number))
    return ""


def facet_problems(env: WorkerEnv) -> list[tuple[Problem, Mends]]:
    """Return that skills are filtered by other tags, capabilities and agents than they say they have, if any are."""
    wrong = wrong_facets(env)
    if not wrong:
        return []
    _number, key = wrong[0]
    detail = f"{len(wrong)} skills are filtered by something else than they say, such as {key}"
    not_counted = facets_not_counted(env)
    parts = [partial(_mend, number=number, not_counted=not_counted) for number, _key in wrong]
    return [(Problem(Kind.FACETS, "facets of skills", detail), parts)]


def _mend(env: WorkerEnv, number: int, not_counted: Collection[Facet]) -> str:
    mend_facets(env, number, not_counted)
    return ""
