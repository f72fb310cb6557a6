"""What the skills extension of MCP says of a skill: its frontmatter, and each file with its digest."""

from __future__ import annotations

from typing import Any

from marketplace.api.trust import said_of
from marketplace.artifacts.archives import MANIFEST_NAME
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.resource_uris import accepted_frontmatter, resource_uri


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
        entry["_meta"] = {"vskill/warning": warning}
    return entry
