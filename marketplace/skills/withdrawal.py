"""Say in a sentence why a skill or a version is withdrawn, for pages, API, dialects and whoever submits it again."""

from __future__ import annotations

from typing import Final

from marketplace.errors import MalformedRecord
from marketplace.models import SkillEntry, SkillVersion
from marketplace.records import Visibility
from marketplace.skills.store import skills_of_identity
from marketplace.skills.visibility import light_versions
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible

_LONGEST_REASON: Final = 500
_WITHHELD: Final = {
    Visibility.QUARANTINED: "This skill is quarantined: the registry withholds it and its files. Do not use it.",
    Visibility.DELETED: "This skill was taken out of the registry.",
}


def withheld(skill: SkillEntry) -> str:
    """Return why a skill is withheld as a whole, with the operator's reason; empty for a visible one."""
    sentence = _WITHHELD.get(Visibility(skill.standing)) if skill.standing else ""
    if not sentence:
        return ""
    try:
        reason = skill.record.visibility_reason
    except (MalformedRecord, ValueError):
        reason = ""
    return _with_reason(sentence, reason)


def withdrawn(version: SkillVersion) -> str:
    """Return why a version is withdrawn, with the operator's reason; empty for one that is offered."""
    if version.quarantined_at is not None:
        sentence = f"Version {version.version} is quarantined: the registry withholds it. Do not use it."
        return _with_reason(sentence, version.quarantine_reason)
    if version.yanked_at is not None:
        return _with_reason(f"Version {version.version} was withdrawn (yanked).", version.yank_reason)
    return ""


def source_gone(skill: SkillEntry) -> str:
    """Return that the source of a skill no longer has it; empty where it has, or where that was not looked for."""
    try:
        record = skill.record
    except (MalformedRecord, ValueError):
        return ""
    if not record.source_gone_at:
        return ""
    return (
        f"Its source no longer has it: on {record.source_gone_at[:10]}, the folder {record.skill_path or '.'} was not "
        f"in commit {record.source_gone_commit[:12]}. What is published stays."
    )


def nothing_offered(env: WorkerEnv, skill: SkillEntry) -> str:
    """Return why a skill has no version on offer: it is withheld, or its newest version is withdrawn."""
    if reason := withheld(skill):
        return reason
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill)
    newest = light_versions(versions).order_by("-ordinal").first()
    reason = withdrawn(newest) if newest is not None else ""
    return f"This skill has no version that is offered. {reason}".strip()


def why_withdrawn(env: WorkerEnv, identity: str, version: str = "") -> str:
    """Return why the skill with this ``identity``, or its ``version`` if one is given, is withdrawn; empty if not."""
    skill = skills_of_identity(env, identity).first()
    if skill is None:
        return ""
    if (reason := withheld(skill)) or not version:
        return reason
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill, version=version)
    found = light_versions(versions).first()
    return withdrawn(found) if found is not None else ""


def _with_reason(sentence: str, reason: str) -> str:
    said = visible(" ".join(reason.split()), _LONGEST_REASON)
    return f"{sentence} The reason given: {said}" if said else sentence
