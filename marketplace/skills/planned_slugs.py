"""Tell which slug a skill will get when it is published, and who has the plain one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX, SkillEntry
from marketplace.skills.publishers import publisher_of, skill_identity
from marketplace.skills.reservations import may_have_slug
from marketplace.skills.slugs import slug_candidates
from vskill.accounts.audiences import PUBLIC
from vskill.environments import WorkerEnv
from vskill.kv.codec import decode

_AT_ONCE: Final = 400
_NOT_TOLD: Final = "another publisher"


@dataclass(frozen=True)
class PlannedSlug:
    """The slug that a new skill will get; ``plain`` is the one of its name alone.

    ``holder`` is the handle of the publisher whose skill has or had the plain one, empty where it is free.
    ``is_own`` says that this publisher is the skill's own.
    """

    slug: str
    plain: str
    holder: str = ""
    is_own: bool = False


def plan_slugs(env: WorkerEnv, repo_url: str, skills: Sequence[tuple[str, str]]) -> list[PlannedSlug]:
    """Return the planned slug of each new skill of a repository, given as its folder and name, best first.

    A skill never gets a slug that one before it gets, nor one that the policy reserves for others. Nothing is kept for
    it: who publishes first has the slug.
    """
    owner = publisher_of(repo_url)
    candidates = [
        list(slug_candidates(name, owner.owner, owner.repository, skill_identity(repo_url, path)))
        for path, name in skills
    ]
    holders = _holders(env, {slug for each in candidates for slug in each})
    given: dict[str, str] = {}
    planned = []
    for each in candidates:
        taken = {**holders, **given}
        free = (one for one in each if one not in taken and may_have_slug(env, repo_url, one))
        slug = next(free, each[-1])
        holder = taken.get(each[0], "")
        given[slug] = owner.handle
        planned.append(PlannedSlug(slug, each[0], holder, is_own=holder == owner.handle))
    return planned


def _holders(env: WorkerEnv, slugs: Iterable[str]) -> dict[str, str]:
    """Return the publisher's handle of each slug that a skill has or had."""
    wanted = sorted(slugs)
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name)
    holders: dict[str, str] = {}
    former: dict[str, str] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        keys = [prefix + slug for slug in some for prefix in (SKILL_PREFIX, ALIAS_PREFIX)]
        for row in rows.filter(key__in=keys):
            if row.is_alias:
                former[row.key.removeprefix(ALIAS_PREFIX)] = _target(row)
            else:
                # Of a private skill only the name is told, which whoever asks has chosen already.
                holders[row.key.removeprefix(SKILL_PREFIX)] = (
                    row.publisher_handle if row.audience == PUBLIC else _NOT_TOLD
                )
    present = rows.filter(key__in=[SKILL_PREFIX + slug for slug in former.values()])
    handles = {row.slug: row.publisher_handle for row in present if row.audience == PUBLIC}
    return {**{slug: handles.get(target, "") or _NOT_TOLD for slug, target in former.items()}, **holders}


def _target(alias: SkillEntry) -> str:
    try:
        return str(decode(alias.value))
    except ValueError:
        return ""
