"""What was withdrawn lately and still is: skills that are withheld, and versions of skills that are shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.visibility import light_versions, versions_of_shown, withheld_skills
from marketplace.skills.withdrawal import withdrawn, withheld
from vskill.environments import WorkerEnv


@dataclass(frozen=True)
class Withdrawal:
    """A skill or one of its versions that is withdrawn; ``version`` is empty for a whole skill.

    ``sentence`` says what was done and why. Nothing of it is the author's: what they wrote may be the reason.
    """

    skill: SkillEntry
    version: str
    sentence: str
    at: datetime


def recently_withdrawn(env: WorkerEnv, limit: int) -> list[Withdrawal]:
    """Return what is withdrawn now, the latest first, at most ``limit``; call it on a database thread."""
    found = [*_skills(env, limit), *_versions(env, limit)]
    return sorted(found, key=lambda one: (one.at, one.skill.pk, one.version), reverse=True)[:limit]


def _skills(env: WorkerEnv, limit: int) -> list[Withdrawal]:
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, changed_at__isnull=False)
    newest = withheld_skills(rows).order_by("-changed_at", "-id")[:limit]
    return [Withdrawal(row, "", withheld(row), row.changed_at) for row in newest if row.changed_at is not None]


def _versions(env: WorkerEnv, limit: int) -> list[Withdrawal]:
    """Return the versions that were withdrawn last, of skills that are shown; each way of it has an index by time."""
    rows = SkillVersion.objects.using(env.database).filter(namespace=env.name)
    shown = light_versions(versions_of_shown(rows).select_related("skill"))
    quarantined = shown.filter(quarantined_at__isnull=False).order_by("-quarantined_at", "-id")[:limit]
    yanked = shown.filter(yanked_at__isnull=False, quarantined_at__isnull=True).order_by("-yanked_at", "-id")[:limit]
    return [
        Withdrawal(version.skill, version.version, withdrawn(version), at)
        for version in (*quarantined, *yanked)
        if (at := version.quarantined_at or version.yanked_at) is not None
    ]
