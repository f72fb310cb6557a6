"""What a list says that its skills can do, by their records, without reading the whole of any version."""

from __future__ import annotations

from collections.abc import Sequence

from marketplace.capabilities import INCONCLUSIVE, NOT_KNOWN, Capabilities, left_unread
from marketplace.errors import MalformedRecord
from marketplace.judgement import Judgement, judge
from marketplace.models import SkillEntry, SkillVersion
from vskill.environments import WorkerEnv


def capabilities_of(row: SkillEntry, *, unread: bool) -> Capabilities:
    """Return the capabilities of a skill, which are not known where its value is damaged.

    ``unread`` says that its latest version was not read whole.
    """
    try:
        return Capabilities(row.capabilities, unread=unread)
    except (MalformedRecord, ValueError):
        # The columns are still right, verify_store reports the value, and one bad row must not break a list.
        return NOT_KNOWN


def not_read_whole(env: WorkerEnv, rows: Sequence[SkillEntry]) -> set[int]:
    """Return the primary keys of the skills whose latest version was not read whole.

    Most verdicts say so; of those that do not, the scans are read, by one statement.
    """
    found = {row.pk for row in rows if row.verdict == INCONCLUSIVE or judge(row.verdict) is Judgement.UNSCANNED}
    held = {row.pk: row for row in rows if row.pk not in found and judge(row.verdict) is not Judgement.PASSED}
    if held:
        versions = SkillVersion.objects.using(env.database).filter(
            namespace=env.name, skill_id__in=held, version__in={row.latest_version for row in held.values()}
        )
        for one in versions.only("skill_id", "version", "verdict", "engines", "findings"):
            if one.version == held[one.skill_id].latest_version and left_unread(one):
                found.add(one.skill_id)
    return found
