"""Withdraw and bring back: yank, quarantine, delete, restore, rename. Each is one transaction with a row of history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypeVar

from django.db import IntegrityError, transaction

from marketplace.errors import MarketplaceError, SkillNotFound, SlugTaken
from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX, SkillEntry, SkillVersion
from marketplace.records import SkillRecord, Visibility
from marketplace.skills.slugs import is_slug
from marketplace.skills.store import (
    locked_skill,
    move_skill,
    now_text,
    record_event,
    skill_namespace,
    update_skill,
    with_latest,
)
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now
from vskill.kv.errors import VersionConflict

T = TypeVar("T")
_ATTEMPTS: Final = 5


class ReasonMissing(MarketplaceError):
    """Something is to be withdrawn without a reason; nothing was changed."""

    code = "reason_missing"


def yank_version(env: WorkerEnv, slug: str, version: str, *, actor: str, reason: str) -> SkillRecord:
    """Hide one version; who asks for it by its number still gets it, with a warning. ``latest`` moves on."""
    _require(reason)
    now = database_now(env.database)
    return _mark(env, slug, version, "yanked", actor, reason, yanked_at=now, yank_reason=reason)


def unyank(env: WorkerEnv, slug: str, version: str, *, actor: str, reason: str) -> SkillRecord:
    """Take back the yank of one version."""
    return _mark(env, slug, version, "unyanked", actor, reason, yanked_at=None, yank_reason="")


def quarantine_version(env: WorkerEnv, slug: str, version: str, *, actor: str, reason: str) -> SkillRecord:
    """Withhold one version from everybody; the others stay."""
    _require(reason)
    now = database_now(env.database)
    return _mark(env, slug, version, "version quarantined", actor, reason, quarantined_at=now, quarantine_reason=reason)


def restore_version(env: WorkerEnv, slug: str, version: str, *, actor: str, reason: str) -> SkillRecord:
    """Take back the quarantine of one version."""
    return _mark(env, slug, version, "version restored", actor, reason, quarantined_at=None, quarantine_reason="")


def quarantine_skill(env: WorkerEnv, slug: str, *, actor: str, reason: str) -> SkillRecord:
    """Withhold a skill and all of its versions from everybody."""
    _require(reason)
    return _show(env, slug, Visibility.QUARANTINED, "quarantined", actor, reason)


def delete_skill(env: WorkerEnv, slug: str, *, actor: str, reason: str) -> SkillRecord:
    """Take a skill out; its name and its versions are held, so that it can be restored and nobody takes its name."""
    _require(reason)
    return _show(env, slug, Visibility.DELETED, "deleted", actor, reason)


def restore(env: WorkerEnv, slug: str, *, actor: str, reason: str) -> SkillRecord:
    """Show a skill again that was quarantined or deleted; marks of single versions stay."""
    return _show(env, slug, Visibility.VISIBLE, "restored", actor, reason)


def rename_skill(env: WorkerEnv, slug: str, new_slug: str, *, actor: str, reason: str) -> SkillRecord:
    """Give a skill another slug; the old one becomes an alias that leads to it.

    Raises ``SlugTaken`` for a slug that another skill has or had, or that the rule does not allow.
    """
    if not is_slug(new_slug):
        raise SlugTaken(f"{new_slug!r} is no slug: lower-case letters, digits and single hyphens. Nothing was renamed.")

    def rename() -> SkillRecord:
        row = locked_skill(env, slug)
        record = row.record
        if new_slug == record.slug:
            return record
        holder = skill_namespace(env).get_sync(f"{ALIAS_PREFIX}{new_slug}")
        if skill_namespace(env).get_sync(f"{SKILL_PREFIX}{new_slug}").version or (
            holder.version and holder.value != record.slug
        ):
            raise SlugTaken(f"{new_slug!r} belongs to another skill, or did. Nothing was renamed.")
        moved = move_skill(env, row, record, new_slug, actor=actor, reason=reason)
        record_event(env, row.key, "renamed", actor=actor, reason=f"from {slug}: {reason}", row=row)
        return moved

    return _in_transaction(env, rename)


def _require(reason: str) -> None:
    if not reason.strip():
        raise ReasonMissing(
            "Say why: the reason is kept in the history and shown to its publisher. Nothing was changed."
        )


def _in_transaction(env: WorkerEnv, deed: Callable[[], T]) -> T:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with transaction.atomic(using=env.database):
                return deed()
        except (IntegrityError, VersionConflict):
            # A publication was first; what it wrote is read anew.
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def _mark(
    env: WorkerEnv, slug: str, version: str, action: str, actor: str, reason: str, **marks: datetime | str | None
) -> SkillRecord:
    def mark() -> SkillRecord:
        row = locked_skill(env, slug)
        versions = SkillVersion.objects.using(env.database).filter(skill=row)
        if not versions.filter(version=version).update(**marks):
            raise SkillNotFound(f"{slug!r} has no version {version!r}. Nothing was changed.")
        known = list(versions.defer("skill_md", "findings", "manifest"))
        record = replace(with_latest(row.record, known), updated_at=now_text(env))
        return _write(env, row, record, action, actor, reason, version=version)

    return _in_transaction(env, mark)


def _show(env: WorkerEnv, slug: str, visibility: Visibility, action: str, actor: str, reason: str) -> SkillRecord:
    def show() -> SkillRecord:
        row = locked_skill(env, slug)
        kept = "" if visibility is Visibility.VISIBLE else reason
        record = replace(row.record, visibility=visibility, visibility_reason=kept, updated_at=now_text(env))
        return _write(env, row, record, action, actor, reason)

    return _in_transaction(env, show)


def _write(
    env: WorkerEnv, row: SkillEntry, record: SkillRecord, action: str, actor: str, reason: str, **event: Any
) -> SkillRecord:
    update_skill(env, row, record)
    record_event(env, row.key, action, actor=actor, reason=reason, row=row, **event)
    return record
