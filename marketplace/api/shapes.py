"""The JSON objects that describe skills and versions; each has the fields of every client that reads it.

clawhub rejects a body in which one field has an unexpected type, so times are numbers here. vskill reads fields of
other names.
"""

from __future__ import annotations

import hashlib
from typing import Any

from marketplace.api.trust import certification_tier, milliseconds, trust_tier
from marketplace.errors import MalformedRecord
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.publishers import publisher_of


def _tags(skill: SkillEntry) -> list[str]:
    try:
        return list(skill.tags)
    except (MalformedRecord, ValueError):
        # The columns are still right, and one damaged value must not break a whole list.
        return []


def skill_shape(skill: SkillEntry, latest: SkillVersion | None) -> dict[str, Any]:
    """Return a skill for lists and details: the fields of clawhub, then those of vskill.

    ``latest`` is its latest version, ``None`` where there is none or where it was not read.
    """
    repository = publisher_of(skill.repo_url).repository
    return {
        "slug": skill.slug,
        "displayName": skill.display_name or skill.name,
        "summary": skill.description,
        "description": skill.description,
        "topics": _tags(skill),
        "tags": {"latest": skill.latest_version} if skill.latest_version else {},
        "stats": {"downloads": skill.downloads},
        "createdAt": milliseconds(skill.published_at),
        "updatedAt": milliseconds(skill.changed_at),
        "metadata": None,
        "license": skill.license,
        "verdict": skill.verdict,
        "name": f"{skill.publisher_handle}/{repository}/{skill.slug}",
        "author": skill.publisher_handle,
        "ownerSlug": skill.publisher_handle,
        "repoSlug": repository,
        "skillSlug": skill.slug,
        "repoUrl": skill.repo_url,
        "currentVersion": skill.latest_version,
        "certTier": certification_tier(skill.verdict),
        "trustTier": trust_tier(skill.verdict, skill.visibility),
        "vskillInstalls": skill.downloads,
        "isBlocked": False,
        "isTainted": False,
        **({"provenanceVerified": True, "commit": latest.commit_sha} if latest is not None else {}),
    }


def list_item(skill: SkillEntry, latest: SkillVersion | None) -> dict[str, Any]:
    """Return a skill in a list with its latest version; clawhub wants the field left out, not null, for none."""
    item = {**skill_shape(skill, latest), "ownerHandle": skill.publisher_handle}
    return {**item, "latestVersion": version_shape(latest)} if latest is not None else item


def content_fields(version: SkillVersion) -> dict[str, Any]:
    """Return SKILL.md and its SHA-256 as vskill computes it: without a byte-order mark, with LF line ends."""
    content = version.skill_md.removeprefix("\ufeff").replace("\r\n", "\n")
    return {"content": version.skill_md, "sha": hashlib.sha256(content.encode()).hexdigest()}


def owner_shape(skill: SkillEntry) -> dict[str, Any]:
    """Return the publisher of a skill in clawhub's fields."""
    return {"handle": skill.publisher_handle or None, "displayName": skill.publisher_handle or None, "image": None}


def version_shape(version: SkillVersion) -> dict[str, Any]:
    """Return a version in clawhub's fields.

    ``license`` is null because clawhub accepts a single licence there; ``spdx`` has the real one.
    """
    shape: dict[str, Any] = {
        "version": version.version,
        "createdAt": milliseconds(version.created_at),
        "changelog": f"Published from commit {version.commit_sha[:12]}.",
        "changelogSource": "auto",
        "license": None,
        "spdx": version.license,
        "contentHash": version.content_hash,
        "commit": version.commit_sha,
        "verdict": version.verdict,
    }
    if version.yanked_at is not None:
        shape |= {"yanked": True, "yankReason": version.yank_reason}
    return shape


def vskill_version(version: SkillVersion) -> dict[str, Any]:
    """Return a version in the fields that ``vskill versions`` prints; its time is an ISO text."""
    return {
        "version": version.version,
        "certTier": certification_tier(version.verdict),
        "createdAt": version.created_at.isoformat(),
        "contentHash": version.content_hash,
        "diffSummary": f"commit {version.commit_sha[:12]}",
        "yanked": version.yanked_at is not None,
    }
