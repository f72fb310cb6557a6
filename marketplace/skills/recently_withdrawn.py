"""What was withdrawn lately and still is: skills that are withheld, and versions of skills that are shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Q

from marketplace.models import HistoryEvent, SkillEntry, SkillVersion
from marketplace.skills.visibility import light_versions, visible_skills, withheld_skills
from marketplace.skills.withdrawal import withdrawn, withheld
from vskill.environments import WorkerEnv

# So many of the last events are looked through for versions that were withdrawn; a skill is found however long ago.
_EVENTS: Final = 20_000
_MOST_VERSIONS: Final = 500


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
    found = [*_skills(env, limit), *_versions(env)]
    return sorted(found, key=lambda one: (one.at, one.skill.pk, one.version), reverse=True)[:limit]


def _skills(env: WorkerEnv, limit: int) -> list[Withdrawal]:
    rows = SkillEntry.objects.using(env.database).filter(namespace=env.name, changed_at__isnull=False)
    newest = withheld_skills(rows).order_by("-changed_at", "-id")[:limit]
    return [Withdrawal(row, "", withheld(row), row.changed_at) for row in newest if row.changed_at is not None]


def _versions(env: WorkerEnv) -> list[Withdrawal]:
    events = HistoryEvent.objects.using(env.database).filter(namespace=env.name)
    last = events.order_by("-id").values_list("pk", flat=True).first()
    if last is None:
        return []
    # A flag can withhold a version as well. What is true now is read from the version below.
    withdrawals = Q(action__in=("yanked", "version quarantined")) | Q(action__startswith="flagged: ")
    named = list(
        events.filter(withdrawals, pk__gt=last - _EVENTS, skill__isnull=False)
        .order_by("-id")
        .values_list("skill_id", "version")[:_MOST_VERSIONS]
    )
    rows = SkillVersion.objects.using(env.database).filter(
        Q(yanked_at__isnull=False) | Q(quarantined_at__isnull=False),
        namespace=env.name,
        skill_id__in={skill_id for skill_id, _version in named},
        version__in={version for _skill_id, version in named},
    )
    shown = visible_skills(SkillEntry.objects.using(env.database).filter(pk__in={one[0] for one in named}))
    skills = shown.in_bulk()
    return [
        Withdrawal(skills[version.skill_id], version.version, withdrawn(version), at)
        for version in light_versions(rows)
        if (version.skill_id, version.version) in set(named) and version.skill_id in skills
        if (at := version.quarantined_at or version.yanked_at) is not None
    ]
