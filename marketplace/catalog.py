"""The catalogue of published skills: publish, find, list, enumerate, withdraw.

The face of the marketplace to the rest of the project: callers import from here, whatever room does the work.
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
# How many reads are in flight at once; memory does not grow beyond it, however many skills there are.
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
    """The skills that are published, and how the read of every entry ended; ``counts`` leaves out only aliases."""

    skills: tuple[SkillRecord, ...]
    counts: ReadCounts


async def enumerate_published_skills(env: WorkerEnv) -> EnumeratedSkills:
    """Return every skill that is published and shown, read from its entry and from no index.

    Aliases are left out by their key, before anything is read. The rest is read concurrently, each entry by itself:
    one that is malformed, unreadable or gone meanwhile is skipped and counted.
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
    """Return the slug of the skill that ``slug`` names now, whether it is shown or not, or ``None``.

    Former names are followed at most five deep; a loop, and an alias that leads nowhere, are not found.
    """
    # Queries of our own and not get(), which gives no value for a database that is away: that is no "not found".
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
    # What an address carries may be anything; a colon would reach keys of another kind.
    return 0 < len(slug) <= 200 and ":" not in slug and slug.isprintable()


def find_skill_sync(env: WorkerEnv, slug: str, *, hidden: bool = False) -> SkillEntry | None:
    """Return the skill that ``slug`` names now; see ``find_skill``."""
    resolved = resolve_slug_sync(env, slug)
    if resolved is None:
        return None
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, key=f"{SKILL_PREFIX}{resolved}")
    return (rows if hidden else visible_skills(rows)).first()


async def find_skill(env: WorkerEnv, slug: str, *, hidden: bool = False) -> SkillEntry | None:
    """Return the skill that ``slug`` names, now or formerly, if it is shown; ``hidden`` asks for any."""
    return await readers.run(find_skill_sync, env, slug, hidden=hidden)


def find_version_sync(env: WorkerEnv, skill: SkillEntry, version: str = "") -> SkillVersion | None:
    """Return a version of a skill that may be fetched, by default the latest, or ``None``."""
    versions = fetchable_versions(SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill))
    return versions.filter(version=version or skill.latest_version).select_related("skill").first()
