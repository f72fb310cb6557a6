"""The catalogue of published skills: publish, find, list, enumerate, withdraw.

This is the interface of the marketplace for the rest of the project: callers import from here, wherever the work is
done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from marketplace.errors import (
    MalformedRecord,
    PublicationBlocked,
    PublicationMismatch,
    SkillNotFound,
    SlugTaken,
)
from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX, SkillEntry, SkillVersion
from marketplace.records import SkillRecord
from marketplace.skills.listing import (
    SORTS,
    SkillFilters,
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
from marketplace.skills.publish import (
    Publication,
    PublishedFile,
    PublishedVersion,
    prepare_publication,
    publish_skill,
)
from marketplace.skills.store import skill_namespace
from marketplace.skills.visibility import fetchable_versions, is_visible, listed_skills, visible_skills
from vskill.environments import WorkerEnv
from vskill.kv.codec import decode
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome, ReadCounts, Status
from vskill.kv.threads import readers

MAX_ALIAS_DEPTH: Final = 5
# Reads in flight at once. It bounds memory, however many skills there are.
READ_WINDOW: Final = 2000

__all__ = [
    "ALIAS_PREFIX",
    "SORTS",
    "EnumeratedSkills",
    "Publication",
    "PublicationBlocked",
    "PublicationMismatch",
    "PublishedFile",
    "PublishedVersion",
    "SkillFilters",
    "SkillNotFound",
    "SkillPage",
    "SlugTaken",
    "delete_skill",
    "enumerate_published_skills",
    "facet_counts",
    "fetchable_versions",
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
    "unyank",
    "yank_version",
]


@dataclass(frozen=True)
class EnumeratedSkills:
    """The published skills, and the outcomes of all reads: ``counts`` covers every entry that is not an alias."""

    skills: tuple[SkillRecord, ...]
    counts: ReadCounts


async def enumerate_published_skills(env: WorkerEnv) -> EnumeratedSkills:
    """Return every visible skill, read from its own entry and not from an index.

    Aliases are excluded by key before anything is read. All other entries are read concurrently and one by one: an
    entry that is malformed, unreadable or deleted meanwhile is skipped and counted.
    """
    namespace = skill_namespace(env)
    skills: list[SkillRecord] = []
    statuses: list[Status] = []
    waiting: list[str] = []
    async for key in namespace.list_all(SKILL_PREFIX):
        if key.startswith(ALIAS_PREFIX):
            continue
        waiting.append(key)
        if len(waiting) == READ_WINDOW:
            await _read(namespace, waiting, skills, statuses)
            waiting = []
    await _read(namespace, waiting, skills, statuses)
    return EnumeratedSkills(tuple(skills), ReadCounts.of(statuses))


async def _read(namespace: KVNamespace, keys: Sequence[str], skills: list[SkillRecord], statuses: list[Status]) -> None:
    for outcome in await asyncio.gather(*(namespace.get(key) for key in keys)):
        record = _record_of(outcome)
        statuses.append(Status.MALFORMED if outcome.found and record is None else outcome.status)
        if record is not None and is_visible(record):
            skills.append(record)


def _record_of(outcome: Outcome) -> SkillRecord | None:
    try:
        return SkillRecord.from_value(outcome.value) if outcome.found else None
    except MalformedRecord:
        return None


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


def find_skill_sync(env: WorkerEnv, slug: str, *, hidden: bool = False) -> SkillEntry | None:
    """Return the visible skill that has or had ``slug``, or ``None``; with ``hidden``, one that is withheld as well."""
    resolved = resolve_slug_sync(env, slug)
    if resolved is None:
        return None
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, key=f"{SKILL_PREFIX}{resolved}")
    return (rows if hidden else visible_skills(rows)).first()


async def find_skill(env: WorkerEnv, slug: str, *, hidden: bool = False) -> SkillEntry | None:
    """Return the visible skill that has or had ``slug``, or ``None``; see ``find_skill_sync``."""
    return await readers.run(find_skill_sync, env, slug, hidden=hidden)


def find_version_sync(env: WorkerEnv, skill: SkillEntry, version: str = "") -> SkillVersion | None:
    """Return a fetchable version of a skill, by default the latest, or ``None``."""
    versions = fetchable_versions(SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill))
    return versions.filter(version=version or skill.latest_version).select_related("skill").first()
