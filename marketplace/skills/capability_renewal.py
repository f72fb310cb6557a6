"""Let a skill say what its latest version can do, after a scan has found more or less, or where its entry disagrees."""

from __future__ import annotations

from typing import Final

from django.db.models import F

from marketplace.errors import MalformedRecord
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.capability_names import asked_names
from marketplace.skills.store import write_capabilities
from vskill.environments import WorkerEnv

_AT_ONCE: Final = 500


def lock_skill(env: WorkerEnv, number: int) -> SkillEntry:
    """Return the row of the skill with a primary key, locked until the transaction ends.

    Whoever changes a version and then its skill locks this first, as everybody else does.
    """
    row: SkillEntry = SkillEntry.objects.using(env.database).select_for_update().get(pk=number)
    return row


def renew_capabilities(env: WorkerEnv, row: SkillEntry) -> bool:
    """Write what the latest version of the skill in ``row`` can do; return whether its entry said something else.

    ``row`` is locked. A value that cannot be read is left as it is: ``verify_store`` tells of it.
    """
    try:
        record = row.record
    except (MalformedRecord, ValueError):
        return False
    versions = SkillVersion.objects.using(env.database).filter(skill=row, version=record.latest_version)
    found = versions.values_list("capabilities", "contract").first()
    if found is None or (names := asked_names(*found)) == record.capabilities:
        return False
    write_capabilities(env, row, names)
    return True


def wrong_capabilities(env: WorkerEnv) -> list[int]:
    """Return the primary keys of the skills whose entry says other capabilities than their latest version has.

    The contract of each is read.
    """
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name)
    latest = versions.filter(version=F("skill__latest_version")).exclude(skill__slug="").select_related("skill")
    wrong = []
    for version in latest.only("capabilities", "contract", "skill__value").order_by().iterator(_AT_ONCE):
        try:
            said = version.skill.capabilities
        except (MalformedRecord, ValueError):
            continue
        if asked_names(version.capabilities, version.contract) != said:
            wrong.append(version.skill_id)
    return sorted(wrong)
