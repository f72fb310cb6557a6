"""The catalogue of published skills: publish, find, list, enumerate, withdraw.

This is the interface of the marketplace for the rest of the project: callers import from here, wherever the work is
done.
"""

from __future__ import annotations

from typing import Final

from marketplace.errors import PublicationBlocked, PublicationMismatch, SkillNotFound, SlugTaken
from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX, SkillEntry, SkillVersion
from marketplace.skills.count_reads import figures
from marketplace.skills.enumeration import (
    EnumeratedSkills,
    SkillStream,
    enumerate_published_skills,
    stream_published_skills,
)
from marketplace.skills.filters import FacetValue, HowMany, SkillFilters
from marketplace.skills.listing import (
    SORTS,
    SkillPage,
    facet_counts,
    get_published_skills_list,
    list_skills,
)
from marketplace.skills.moderation import (
    delete_skill,
    quarantine_skill,
    quarantine_version,
    rename_skill,
    restore,
    restore_version,
    unyank,
    yank_version,
)
from marketplace.skills.publication import Publication, PublishedFile, PublishedVersion, prepare_publication
from marketplace.skills.publish import publish_skill
from marketplace.skills.visibility import fetchable_versions, is_visible, known_skills, listed_skills, visible_skills
from vskill.environments import WorkerEnv
from vskill.kv.codec import decode
from vskill.visitors.reads import page_reads

MAX_ALIAS_DEPTH: Final = 5

__all__ = [
    "ALIAS_PREFIX",
    "SORTS",
    "EnumeratedSkills",
    "FacetValue",
    "HowMany",
    "Publication",
    "PublicationBlocked",
    "PublicationMismatch",
    "PublishedFile",
    "PublishedVersion",
    "SkillFilters",
    "SkillNotFound",
    "SkillPage",
    "SkillStream",
    "SlugTaken",
    "delete_skill",
    "enumerate_published_skills",
    "facet_counts",
    "fetchable_versions",
    "figures",
    "find_skill",
    "find_skill_sync",
    "find_version_sync",
    "get_published_skills_list",
    "is_visible",
    "list_skills",
    "listed_skills",
    "prepare_publication",
    "publish_skill",
    "quarantine_skill",
    "quarantine_version",
    "rename_skill",
    "resolve_slug_sync",
    "restore",
    "restore_version",
    "stream_published_skills",
    "unyank",
    "yank_version",
]


def resolve_slug_sync(env: WorkerEnv, slug: str) -> str | None:
    """Return the present slug of the skill that has or had ``slug``, visible or not, or ``None``.

    At most ``MAX_ALIAS_DEPTH`` aliases are followed; a loop and a dangling alias give ``None``.
    """
    # Not get(), which returns an outcome when the database is down: that must raise an error and not be "not found".
    rows = SkillEntry.objects.using(env.database).live().filter(namespace=env.name)
    for _hop in range(MAX_ALIAS_DEPTH + 1):
        if not _may_be_slug(slug):
            return None
        keys = (f"{SKILL_PREFIX}{slug}", f"{ALIAS_PREFIX}{slug}")
        found = dict(rows.filter(key__in=keys).values_list("key", "value"))
        if keys[0] in found:
            return slug
        slug = _alias_target(found.get(keys[1], "null"))
    return None


def _alias_target(text: str) -> str:
    try:
        target = decode(text)
    except ValueError:
        return ""
    return target if isinstance(target, str) else ""


def _may_be_slug(slug: str) -> bool:
    # The slug comes from a URL and can be any text; a colon in it would reach keys of other kinds.
    return 0 < len(slug) <= 200 and ":" not in slug and slug.isprintable()


def find_skill_sync(env: WorkerEnv, slug: str, *, hidden: bool = False, every: bool = False) -> SkillEntry | None:
    """Return the visible skill that has or had ``slug``, or ``None``; with ``hidden``, one that is withheld as well.

    What whoever asks now may not see is not there. With ``every``, for operators, it is found whoever asks.
    """
    resolved = resolve_slug_sync(env, slug)
    if resolved is None:
        return None
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, key=f"{SKILL_PREFIX}{resolved}")
    if every:
        return rows.first()
    return (known_skills(rows) if hidden else visible_skills(rows)).first()


async def find_skill(env: WorkerEnv, slug: str, *, hidden: bool = False) -> SkillEntry | None:
    """Return the visible skill that has or had ``slug``, or ``None``; see ``find_skill_sync``."""
    return await page_reads.run(find_skill_sync, env, slug, hidden=hidden)


def find_version_sync(env: WorkerEnv, skill: SkillEntry, version: str = "") -> SkillVersion | None:
    """Return a fetchable version of a skill, by default the latest, or ``None``."""
    versions = fetchable_versions(SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill))
    return versions.filter(version=version or skill.latest_version).select_related("skill").first()
