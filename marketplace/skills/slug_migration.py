"""Bring the slugs of all skills under the slug rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db import IntegrityError, transaction

from marketplace.errors import MalformedRecord
from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX
from marketplace.records import SkillRecord
from marketplace.skills.publishers import publisher_of
from marketplace.skills.reservations import may_have_slug
from marketplace.skills.slugs import is_slug, slug_candidates
from marketplace.skills.store import locked_skill, move_skill, skill_namespace, slug_is_taken
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict


@dataclass(frozen=True)
class MovedSlug:
    """A skill's old slug, the first slug that the rule gives it (``wanted``), and the slug that it got."""

    old: str
    wanted: str
    new: str


@dataclass
class SlugMigration:
    """What a run did.

    ``migrated`` lists the skills that got the first slug of the rule, ``collisions`` those that got a longer one
    because another skill has the first. ``skipped`` counts skills whose slug already follows the rule. ``unreadable``
    lists keys whose value is no skill, and ``conflicts`` slugs that other writers changed meanwhile: run the migration
    again for these.
    """

    migrated: list[MovedSlug] = field(default_factory=list)
    collisions: list[MovedSlug] = field(default_factory=list)
    skipped: int = 0
    unreadable: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)


def migrate_skill_slugs(env: WorkerEnv, *, dry_run: bool = False, actor: str = "migrate_skill_slugs") -> SlugMigration:
    """Rename every skill whose slug does not follow the rule, leave an alias for each, and return a report.

    It is idempotent. Every entry is read, without an index, however many there are. ``dry_run`` writes nothing and
    returns the report that a real run would. ``actor`` goes into the history.
    """
    report = SlugMigration()
    # Slugs given out so far: a dry run writes none of them, and must report the collisions that a real run would have.
    given: set[str] = set()
    for key in _all_keys(env):
        # A skill that was renamed in this run comes again where its new key is still ahead.
        if key.removeprefix(SKILL_PREFIX) not in given:
            _migrate_key(env, key, report, given, dry_run=dry_run, actor=actor)
    return report


def _all_keys(env: WorkerEnv) -> Iterator[str]:
    """Yield the key of each skill, in bytewise order, read in pages."""
    namespace, cursor = skill_namespace(env), None
    while True:
        page = namespace.list_sync(SKILL_PREFIX, cursor=cursor)
        yield from (key.name for key in page.keys if not key.name.startswith(ALIAS_PREFIX))
        if page.list_complete:
            return
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
    allowed = [slug for slug in candidates if may_have_slug(env, record.repo_url, slug)]
    free = (slug for slug in allowed if slug not in given and not slug_is_taken(env, slug))
    new = old if is_slug(old) else next(free, None)
    if new is None:
        report.conflicts.append(old)
        return
    given.add(new)
    moved = MovedSlug(old, candidates[0] if new != old else old, new)
    if not dry_run and not _move(env, moved, actor):
        report.conflicts.append(old)
        return
    (report.migrated if moved.new == moved.wanted else report.collisions).append(moved)


def _move(env: WorkerEnv, moved: MovedSlug, actor: str) -> bool:
    try:
        with transaction.atomic(using=env.database):
            row = locked_skill(env, moved.old)
            move_skill(env, row, moved.new, actor=actor, reason=f"the slug rule gives {moved.wanted}")
    except (IntegrityError, VersionConflict):
        return False
    return True
