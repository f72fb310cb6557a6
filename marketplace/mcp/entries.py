"""What the skills extension of MCP says of a skill: its frontmatter, and each file with its digest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.db.models import F, QuerySet
from django.db.models.functions import Substr

from marketplace.api.trust import said_of
from marketplace.artifacts.archives import MANIFEST_NAME
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.resource_uris import HEAD_CHARACTERS, accepted_frontmatter, resource_uri
from marketplace.skills.visibility import fetchable_versions
from vskill.environments import WorkerEnv

# The name of what is said of findings, in the ``_meta`` of a skill and of its files.
WARNING: Final = "vskill/warning"


def entries_of(env: WorkerEnv, skills: Iterable[SkillEntry]) -> list[tuple[SkillEntry, dict[str, Any]]]:
    """Return each skill with the entry of its latest version, without those that have findings or none."""
    named = {skill.pk: skill for skill in skills}
    versions = with_heads(env, SkillVersion.objects.using(env.database).filter(skill_id__in=named))
    latest = {one.skill_id: one for one in versions.filter(version=F("skill__latest_version"))}
    return [
        (skill, entry)
        for skill in named.values()
        if (version := latest.get(skill.pk)) is not None
        and not said_of(version).suspicious
        and (entry := entry_of(skill, version, version.head)) is not None
    ]


def with_heads(env: WorkerEnv, versions: QuerySet[SkillVersion]) -> Any:
    """Return the versions that can be fetched, each with the beginning of its SKILL.md as ``head``."""
    found = fetchable_versions(versions.filter(namespace=env.name))
    return found.annotate(head=Substr("skill_md", 1, HEAD_CHARACTERS)).defer("skill_md", "findings", "contract")


def entry_of(skill: SkillEntry, version: SkillVersion, head: str) -> dict[str, Any] | None:
    """Return the entry of a version, or ``None`` where clients of the extension would refuse it.

    ``head`` is the beginning of its SKILL.md.
    """
    front = accepted_frontmatter(head)
    if front is None:
        return None
    entry: dict[str, Any] = {
        "uri": resource_uri(skill.slug, front["name"], MANIFEST_NAME),
        "frontmatter": front,
        "resources": [
            {
                "uri": resource_uri(skill.slug, front["name"], file["path"]),
                "digest": f"sha256:{file['sha256']}",
                "size": file["size"],
            }
            for file in version.manifest
        ],
    }
    if warning := said_of(version).warning:
        entry["_meta"] = {WARNING: warning}
    return entry
