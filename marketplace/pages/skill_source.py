"""What the page of a skill says about its source: the folder of a version, its copies, and that the folder is gone."""

from __future__ import annotations

from typing import Any

from marketplace.errors import MalformedRecord
from marketplace.models import SkillEntry, SkillVersion
from marketplace.pages.source_links import source_href
from marketplace.records import SkillRecord
from vskill.kv.clock import parse_isoformat


def folder_of(skill: SkillEntry, version: SkillVersion) -> str:
    """Return the folder that a version is from; the skill may have moved within its repository since."""
    return str(skill.skill_path if version.skill_path is None else version.skill_path)


def also_at(skill: SkillEntry) -> tuple[str, ...]:
    """Return the other folders with the content of the skill's latest version."""
    record = _record(skill)
    return () if record is None else record.also_at


def source_gone(skill: SkillEntry) -> dict[str, Any] | None:
    """Return the folder that the source no longer has, and when and at which commit that was seen, or ``None``."""
    record = _record(skill)
    if record is None or not record.source_gone_at:
        return None
    return {
        "folder": record.skill_path,
        "at": parse_isoformat(record.source_gone_at),
        "commit_sha": record.source_gone_commit,
        "commit_href": source_href(record.repo_url, record.source_gone_commit),
    }


def _record(skill: SkillEntry) -> SkillRecord | None:
    try:
        return skill.record
    except (MalformedRecord, ValueError):
        return None
