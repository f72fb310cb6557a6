"""Withdraw and restore: yank, quarantine, delete, restore, rename. Each is one transaction with one history event."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from marketplace.errors import MarketplaceError, SkillNotFound, SlugTaken
from marketplace.models import SkillVersion
from marketplace.records import SkillRecord, Visibility
from marketplace.skills.latest import kept_versions, with_latest
from marketplace.skills.reservations import why_slug_reserved
from marketplace.skills.slugs import is_slug
from marketplace.skills.store import Event, in_transaction, locked_skill, move_skill, slug_is_taken, update_skill
from marketplace.skills.visibility import light_versions
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now


class ReasonMissing(MarketplaceError):
    """Something is to be withdrawn without a reason; nothing was changed."""

    code = "reason_missing"


def yank_version(env: WorkerEnv, slug: str, version: str, *, actor: str, reason: str) -> SkillRecord:
    """Yank one version and return the skill's record: it is no longer offered, but still given to those who name it.

    The latest version becomes the highest one that is left. ``actor`` and ``reason`` go into the history, and clients
    that fetch the version are shown the reason. Raises ``SkillNotFound`` and ``ReasonMissing``.
    """
    return _yank(env, slug, Event("yanked", actor, reason, version))


def unyank(env: WorkerEnv, slug: str, version: str, *, actor: str, reason: str) -> SkillRecord:
    """Undo the yank of one version and return the skill's record.

    ``actor`` and ``reason`` go into the history. Raises ``SkillNotFound``.
    """
    return _mark(env, slug, Event("unyanked", actor, reason, version), yanked_at=None, yank_reason="")


def quarantine_version(env: WorkerEnv, slug: str, version: str, *, actor: str, reason: str) -> SkillRecord:
    """Withhold one version from everybody and return the skill's record; other versions stay.

    ``actor`` and ``reason`` go into the history. Raises ``SkillNotFound`` and ``ReasonMissing``.
    """
    _require(reason)
    now = database_now(env.database)
    event = Event("version quarantined", actor, reason, version)
    return _mark(env, slug, event, quarantined_at=now, quarantine_reason=reason)


def restore_version(env: WorkerEnv, slug: str, version: str, *, actor: str, reason: str) -> SkillRecord:
    """Undo the quarantine of one version and return the skill's record.

    ``actor`` and ``reason`` go into the history. Raises ``SkillNotFound``.
    """
    return _mark(
        env, slug, Event("version restored", actor, reason, version), quarantined_at=None, quarantine_reason=""
    )


def quarantine_skill(env: WorkerEnv, slug: str, *, actor: str, reason: str) -> SkillRecord:
    """Withhold a skill and all of its versions from everybody, and return its record.

    ``actor`` and ``reason`` go into the history. Raises ``SkillNotFound`` and ``ReasonMissing``.
    """
    _require(reason)
    return _show(env, slug, Visibility.QUARANTINED, Event("quarantined", actor, reason))


def delete_skill(env: WorkerEnv, slug: str, *, actor: str, reason: str) -> SkillRecord:
    """Withhold a skill as deleted, and return its record.

    Its rows are kept as a tombstone, so that it can be restored and nobody else gets its slug. ``actor`` and
    ``reason`` go into the history. Raises ``SkillNotFound`` and ``ReasonMissing``.
    """
    _require(reason)
    return _show(env, slug, Visibility.DELETED, Event("deleted", actor, reason))


def withdraw_by_publisher(env: WorkerEnv, slug: str, version: str = "", *, actor: str, reason: str) -> SkillRecord:
    """Delete a skill, or yank one ``version`` of it, as its publisher, who may take it back; return its record.

    ``actor``, ``reason`` and what is raised are those of ``delete_skill`` and ``yank_version``.
    """
    if version:
        return _yank(env, slug, Event("yanked", actor, reason, version, by_publisher=True))
    _require(reason)
    return _show(env, slug, Visibility.DELETED, Event("deleted", actor, reason, by_publisher=True))


def restore(env: WorkerEnv, slug: str, *, actor: str, reason: str) -> SkillRecord:
    """Show a quarantined or deleted skill again, and return its record; yanked and quarantined versions stay so.

    ``actor`` and ``reason`` go into the history. Raises ``SkillNotFound``.
    """
    return _show(env, slug, Visibility.VISIBLE, Event("restored", actor, reason))


def rename_skill(env: WorkerEnv, slug: str, new_slug: str, *, actor: str, reason: str) -> SkillRecord:
    """Give a skill another slug and return its record; the old slug becomes an alias of the new one.

    ``actor`` and ``reason`` go into the history. Raises ``SkillNotFound``, and ``SlugTaken`` where another skill has
    or had ``new_slug``, where the policy reserves it for another owner, or where it is no slug.
    """
    if not is_slug(new_slug):
        raise SlugTaken(f"{new_slug!r} is no slug: lower-case letters, digits and single hyphens. Nothing was renamed.")

    def rename() -> SkillRecord:
        row = locked_skill(env, slug)
        record = row.record
        if new_slug == record.slug:
            return record
        if whose := why_slug_reserved(env, record.repo_url, new_slug):
            raise SlugTaken(f"{whose} Nothing was renamed.")
        if slug_is_taken(env, new_slug, own_slug=record.slug):
            raise SlugTaken(f"{new_slug!r} belongs to another skill, or did. Nothing was renamed.")
        return move_skill(env, row, new_slug, actor=actor, reason=reason)

    return in_transaction(env, rename)


def _yank(env: WorkerEnv, slug: str, event: Event) -> SkillRecord:
    _require(event.reason)
    return _mark(env, slug, event, yanked_at=database_now(env.database), yank_reason=event.reason)


def _require(reason: str) -> None:
    if not reason.strip():
        raise ReasonMissing(
            "Say why: the reason is kept in the history and shown to its publisher. Nothing was changed."
        )


def _mark(env: WorkerEnv, slug: str, event: Event, **marks: datetime | str | None) -> SkillRecord:
    def mark() -> SkillRecord:
        row = locked_skill(env, slug)
        versions = SkillVersion.objects.using(env.database).filter(skill=row)
        before = kept_versions(light_versions(versions))
        if not versions.filter(version=event.version).update(**marks):
            raise SkillNotFound(f"{slug!r} has no version {event.version!r}. Nothing was changed.")
        known = list(light_versions(versions))
        return update_skill(env, row, with_latest(row.record, known), event, kept=(before, kept_versions(known)))

    return in_transaction(env, mark)


def _show(env: WorkerEnv, slug: str, visibility: Visibility, event: Event) -> SkillRecord:
    def show() -> SkillRecord:
        row = locked_skill(env, slug)
        reason = "" if visibility is Visibility.VISIBLE else event.reason
        record = replace(row.record, visibility=visibility, visibility_reason=reason)
        versions = kept_versions(light_versions(SkillVersion.objects.using(env.database).filter(skill=row)))
        return update_skill(env, row, record, event, kept=(versions, versions))

    return in_transaction(env, show)
