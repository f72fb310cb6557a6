"""Slugs: the rule, and the migration that brings every skill under it."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import IntegrityError, transaction

from marketplace.errors import MalformedRecord
from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX, SkillEntry
from marketplace.records import SkillRecord
from marketplace.skills.publishers import publisher_of
from marketplace.skills.slugs import is_slug, slug_candidates
from marketplace.skills.store import locked_skill, move_skill, record_event, skill_namespace
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict


@dataclass(frozen=True)
class MovedSlug:
    """A skill's old slug, the one that the rule gives first, and the one that it got."""

    old: str
    wanted: str
    new: str


@dataclass
class SlugMigration:
    """What a run did: ``collisions`` moved too, but to a longer slug, because another skill holds the first one.

    ``skipped`` counts skills whose slug is right already, ``unreadable`` names keys that hold no skill that can be
    read, and ``conflicts`` names slugs that other writers changed meanwhile; run it again for these.
    """

    migrated: list[MovedSlug] = field(default_factory=list)
    collisions: list[MovedSlug] = field(default_factory=list)
    skipped: int = 0
    unreadable: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)


def migrate_skill_slugs(env: WorkerEnv, *, dry_run: bool = False, actor: str = "migrate_skill_slugs") -> SlugMigration:
    """Rename every skill whose slug does not follow the rule, and leave an alias for each.

    Running it twice changes nothing more. Reads the entries themselves, all of them, however many there are.
    ``dry_run`` writes nothing and reports the same.
    """
    report = SlugMigration()
    # Slugs that a dry run has given away, so that it reports the collisions that a real run would have.
    given: set[str] = set()
    for key in _all_keys(env):
        _migrate_key(env, key, report, given, dry_run=dry_run, actor=actor)
    return report


def _all_keys(env: WorkerEnv) -> list[str]:
    namespace, cursor = skill_namespace(env), None
    keys: list[str] = []
    while True:
        page = namespace.list_sync(SKILL_PREFIX, cursor=cursor)
        keys += (key.name for key in page.keys if not key.name.startswith(ALIAS_PREFIX))
        if page.list_complete:
            return keys
        cursor = page.cursor


def _migrate_key(
    env: WorkerEnv, key: str, report: SlugMigration, given: set[str], *, dry_run: bool, actor: str
) -> None:
    old = key.removeprefix(SKILL_PREFIX)
    outcome = skill_namespace(env).get_sync(key)
    if outcome.absent:
        return
    try:
        record = SkillRecord.from_value(outcome.value)
    except MalformedRecord:
        report.unreadable.append(key)
        return
    if is_slug(old) and record.slug == old:
        report.skipped += 1
        return
    owner = publisher_of(record.repo_url)
    candidates = list(slug_candidates(record.name, owner.owner, owner.repository, record.identity or key))
    new = old if is_slug(old) else next((slug for slug in candidates if _is_free(env, slug, given)), None)
    if new is None:
        report.conflicts.append(old)
        return
    given.add(new)
    moved = MovedSlug(old, candidates[0] if new != old else old, new)
    if not dry_run and not _move(env, moved, actor):
        report.conflicts.append(old)
        return
    (report.migrated if moved.new == moved.wanted else report.collisions).append(moved)


def _is_free(env: WorkerEnv, slug: str, given: set[str]) -> bool:
    namespace = skill_namespace(env)
    held = any(namespace.get_sync(f"{prefix}{slug}").version for prefix in (SKILL_PREFIX, ALIAS_PREFIX))
    return slug not in given and not held


def _move(env: WorkerEnv, moved: MovedSlug, actor: str) -> bool:
    reason = f"the slug rule gives {moved.wanted}"
    try:
        with transaction.atomic(using=env.database):
            row: SkillEntry = locked_skill(env, moved.old)
            move_skill(env, row, row.record, moved.new, actor=actor, reason=reason)
            record_event(env, row.key, "renamed", actor=actor, reason=f"from {moved.old}: {reason}", row=row)
    except (IntegrityError, VersionConflict):
        return False
    return True
