"""Show a skill to everybody, to members or to a team; it counts for the next request on every surface."""

from __future__ import annotations

from dataclasses import replace

from django.db.models import Sum

from marketplace.errors import MarketplaceError
from marketplace.models import SkillEntry, SkillVersion
from marketplace.models.derived import DownloadDay
from marketplace.provenance.entries import note_closed, note_opened
from marketplace.records import SkillRecord
from marketplace.skills.counts import DOWNLOADS, Key, change_counts
from marketplace.skills.latest import kept_versions
from marketplace.skills.moderation import ReasonMissing
from marketplace.skills.store import Event, in_transaction, locked_skill, now_text, update_skill
from marketplace.skills.visibility import light_versions
from vskill.accounts.audiences import MEMBERS, PUBLIC, is_audience
from vskill.environments import WorkerEnv


class NoAudience(MarketplaceError):
    """A text names no audience; nothing was changed."""

    code = "no_audience"


def show_to(env: WorkerEnv, slug: str, audience: str, *, actor: str, reason: str) -> SkillRecord:
    """Show a skill to an ``audience`` from now on, and return its record: empty for everybody, ``members``, ``team:7``.

    What was public and is no more is gone for everybody else, as what is withdrawn is: the history and the log tell of
    it, and no kept count has it. What becomes public is new from that moment on, and its publications are told to the
    log then. ``actor`` and ``reason`` go into the history. Raises ``SkillNotFound``, ``ReasonMissing`` and
    ``NoAudience``.
    """
    if not reason.strip():
        raise ReasonMissing("Say why: the reason is kept in the history. Nothing was changed.")
    if not is_audience(audience):
        raise NoAudience(f"{audience!r} is no audience. Nothing was changed.")

    def show() -> SkillRecord:
        row = locked_skill(env, slug)
        before = row.record
        if before.audience == audience:
            return before
        if before.audience == PUBLIC:
            note_closed(env, row)
        record = replace(before, audience=audience)
        if audience == PUBLIC:
            record = replace(record, published_at=now_text(env))
        kept = kept_versions(light_versions(SkillVersion.objects.using(env.database).filter(skill=row)))
        event = Event(f"shown to {_words(audience)}", actor, reason)
        changed = update_skill(env, row, record, event, kept=(kept, kept))
        downloads = _downloads(env, row)
        if before.audience == PUBLIC:
            change_counts(env, downloads, {})
        elif audience == PUBLIC:
            change_counts(env, {}, downloads)
            note_opened(env, locked_skill(env, slug))
        return changed

    return in_transaction(env, show)


def show_to_everybody(env: WorkerEnv, slug: str, *, actor: str, reason: str) -> SkillRecord:
    """Show the skill ``slug`` of ``env`` to everybody; ``actor`` and ``reason`` are those of ``show_to``."""
    return show_to(env, slug, PUBLIC, actor=actor, reason=reason)


def show_to_members(env: WorkerEnv, slug: str, *, actor: str, reason: str) -> SkillRecord:
    """Show the skill ``slug`` of ``env`` to members; ``actor`` and ``reason`` are those of ``show_to``."""
    return show_to(env, slug, MEMBERS, actor=actor, reason=reason)


def _words(audience: str) -> str:
    return {PUBLIC: "everybody", MEMBERS: "members"}.get(audience, audience)


def _downloads(env: WorkerEnv, row: SkillEntry) -> dict[Key, int]:
    """Return what the downloads of a skill add to the total of each day."""
    days = DownloadDay.objects.using(env.database).filter(skill_id=row.pk).order_by()
    sums = days.values_list("day").annotate(Sum("count"))
    return {("", DOWNLOADS, day.isoformat()): count for day, count in sums}
