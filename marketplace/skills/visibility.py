"""The single rule for what is shown, used by pages, API, search, indexes, archives and raw files."""

from __future__ import annotations

from typing import Protocol

from django.db.models import QuerySet

from marketplace.models import SkillEntry, SkillVersion
from marketplace.records import Visibility


class _Shown(Protocol):
    @property
    def slug(self) -> str: ...
    @property
    def visibility(self) -> str: ...


def is_visible(skill: _Shown) -> bool:
    """Return whether a skill (an entry or a record) is shown at its own URL."""
    return bool(skill.slug) and skill.visibility == Visibility.VISIBLE


def visible_skills(skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
    """Return the skills that are shown at their own URLs, without aliases."""
    return skills.filter(visibility=Visibility.VISIBLE).exclude(slug="")


def listed_skills(skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
    """Return the skills that lists, search and indexes show: visible ones with a version that is not withdrawn."""
    return visible_skills(skills).exclude(latest_version="")


def withheld_skills(skills: QuerySet[SkillEntry]) -> QuerySet[SkillEntry]:
    """Return the skills that were shown and are withheld; of these, only that they are, and why, is told."""
    return skills.filter(visibility__in=(Visibility.QUARANTINED, Visibility.DELETED)).exclude(slug="")


def fetchable_versions(versions: QuerySet[SkillVersion]) -> QuerySet[SkillVersion]:
    """Return the versions whose files can be fetched by their exact number; that includes yanked ones."""
    return versions.filter(quarantined_at__isnull=True, skill__visibility=Visibility.VISIBLE).exclude(skill__slug="")


def light_versions(versions: QuerySet[SkillVersion]) -> QuerySet[SkillVersion]:
    """Return ``versions`` without their large columns, each of which is read when it is asked for."""
    return versions.defer("skill_md", "findings", "manifest", "contract")
