"""The JSON objects that describe skills and versions; each has the fields of every client that reads it.

clawhub rejects a body in which one field has an unexpected type, so times are numbers here. vskill reads fields of
other names.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from marketplace.addresses import UPLOAD_REF
from marketplace.api.trust import dialects, milliseconds, said_of, said_of_skill
from marketplace.errors import MalformedRecord
from marketplace.judgement import verdict_of
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.answers import Answer
from marketplace.skills.listing import SkillPage
from marketplace.skills.publishers import publisher_of
from marketplace.skills.withdrawal import source_gone, withdrawn, withheld

# What ``hit_shape`` says, as columns of a skill.
HIT_COLUMNS: Final = (
    "slug",
    "name",
    "display_name",
    "description",
    "license",
    "publisher_handle",
    "latest_version",
    "downloads",
    "changed_at",
    "verdict",
    "flag_reason",
    "visibility",
)


def _tags(skill: SkillEntry) -> list[str]:
    try:
        return list(skill.tags)
    except (MalformedRecord, ValueError):
        # The columns are still right, and one damaged value must not break a whole list.
        return []


def hit_shape(skill: SkillEntry, score: float) -> dict[str, Any]:
    """Return a skill that a search finds in clawhub's fields; its ``HIT_COLUMNS`` are enough."""
    return {
        "score": round(score, 4),
        "slug": skill.slug,
        "displayName": skill.display_name or skill.name,
        "summary": summary_of(skill, said_of_skill(skill).warning),
        "version": skill.latest_version,
        "downloads": skill.downloads,
        "updatedAt": milliseconds(skill.changed_at),
        "ownerHandle": skill.publisher_handle,
        "owner": owner_shape(skill),
    }


def search_fields(found: Answer | SkillPage) -> dict[str, Any]:
    """Return how the query of ``found`` was searched for, ``loosened`` and ``notSearched``, and what is ``near``.

    ``loosened`` is null, or has the words that were searched for because no skill has every word of the query; with
    ``allButOne``, a skill has all of these but one at most. ``notSearched`` are the words of a query with too many.
    ``near`` has for a filter whose value no skill has the values that are near to it.
    """
    loosened = found.loosened
    shown = None if loosened is None else {"words": list(loosened.terms), "allButOne": loosened.lacks_one}
    return {"loosened": shown, "notSearched": list(found.left_out), "near": dict(found.near)}


def summary_of(skill: SkillEntry, warning: str) -> str:
    """Return the text that clawhub prints about a skill: a ``warning`` where there is one, what it does, its licence.

    The client prints a licence of its own (MIT-0) for every skill, so the true one has to stand in this text.
    """
    licence = f"Licence: {skill.license}." if skill.license else "Its author states no licence."
    return " ".join(part for part in (warning, skill.description.strip(), f"({licence})") if part)


def skill_shape(skill: SkillEntry, latest: SkillVersion | None) -> dict[str, Any]:
    """Return a skill for lists and details: the fields of clawhub, then those of vskill.

    ``latest`` is its latest version, ``None`` where there is none or where it was not read.
    """
    repository = publisher_of(skill.repo_url).repository
    verdict = verdict_of(latest) if latest is not None else skill.verdict
    flag_reason = latest.flag_reason if latest is not None else skill.flag_reason
    said = dialects(verdict, skill.standing, flag_reason=flag_reason)
    return {
        "slug": skill.slug,
        "displayName": skill.display_name or skill.name,
        "summary": summary_of(skill, said.warning),
        "description": skill.description,
        "topics": _tags(skill),
        "tags": {"latest": skill.latest_version} if skill.latest_version else {},
        "stats": {"downloads": skill.downloads},
        "createdAt": milliseconds(skill.published_at),
        "updatedAt": milliseconds(skill.changed_at),
        "metadata": None,
        "license": skill.license,
        "verdict": verdict,
        "verdictWarning": said.warning or None,
        "flagReason": flag_reason or None,
        "sourceNote": source_gone(skill) or None,
        "isSuspicious": said.suspicious,
        "name": f"{skill.publisher_handle}/{repository}/{skill.slug}",
        "author": skill.publisher_handle,
        "ownerSlug": skill.publisher_handle,
        "repoSlug": repository,
        "skillSlug": skill.slug,
        "repoUrl": skill.repo_url,
        "currentVersion": skill.latest_version,
        "certTier": said.certification_tier,
        "trustTier": said.trust_tier,
        "vskillInstalls": skill.downloads,
        "isBlocked": False,
        "isTainted": said.tainted,
        **(_provenance(latest) if latest is not None else {}),
    }


def _provenance(version: SkillVersion) -> dict[str, Any]:
    """Return that a version was fetched from its repository, by us; of an upload nobody knows where it is from."""
    fetched = version.source_ref != UPLOAD_REF
    return {"provenanceVerified": fetched, "commit": version.commit_sha}


def _source(version: SkillVersion) -> str:
    kind = "commit" if version.source_ref != UPLOAD_REF else "upload"
    return f"{kind} {version.commit_sha[:12]}"


def withheld_shape(skill: SkillEntry) -> dict[str, Any]:
    """Return a withheld skill: its slug, that it is blocked, and why, but nothing that its author wrote."""
    reason = withheld(skill)
    return {
        "slug": skill.slug,
        "displayName": skill.slug,
        "summary": reason,
        "description": reason,
        "topics": [],
        "tags": {},
        "stats": {},
        "createdAt": milliseconds(skill.published_at),
        "updatedAt": milliseconds(skill.changed_at),
        "metadata": None,
        "name": skill.slug,
        "currentVersion": "",
        "certTier": "",
        "trustTier": dialects("", skill.standing).trust_tier,
        "isBlocked": True,
        "isTainted": False,
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
    said = said_of(version)
    source = f"Published from {_source(version)}."
    # Clients show the beginning, and what warns goes before what an author says.
    words = (said.warning, version.changelog, source) if version.changelog else (source, said.warning)
    changelog = (withdrawn(version), *words)
    shape: dict[str, Any] = {
        "version": version.version,
        "createdAt": milliseconds(version.created_at),
        "changelog": " ".join(part for part in changelog if part),
        "changelogSource": "user" if version.changelog else "auto",
        "license": None,
        "spdx": version.license,
        "contentHash": version.content_hash,
        "commit": version.commit_sha,
        "ref": version.source_ref or None,
        "verdict": verdict_of(version),
        "verdictWarning": said.warning or None,
        "flagReason": version.flag_reason or None,
    }
    if version.yanked_at is not None:
        shape |= {"yanked": True, "yankReason": version.yank_reason}
    return shape


def vskill_version(version: SkillVersion) -> dict[str, Any]:
    """Return a version in the fields that ``vskill versions`` prints; its time is an ISO text."""
    said = said_of(version)
    summary = (withdrawn(version), _source(version), said.warning)
    return {
        "version": version.version,
        "certTier": said.certification_tier,
        "createdAt": version.created_at.isoformat(),
        "contentHash": version.content_hash,
        "diffSummary": " ".join(part for part in summary if part),
        "yanked": version.yanked_at is not None,
    }
