"""What changed between two versions of a skill: what they can do, and how many files differ."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from marketplace.addresses import skill_href
from marketplace.models import SkillVersion
from marketplace.pages.skill import capabilities_of_version


def changes_href(slug: str, before: str, after: str) -> str:
    """Return the address of the page that compares two versions."""
    return f"{skill_href(slug, 'compare')}?{urlencode({'from': before, 'to': after})}"


def changes_between(before: SkillVersion, after: SkillVersion) -> dict[str, Any]:
    """Return what a version can do that the one ``before`` could not, and the numbers of files that differ.

    ``known`` is false where nothing is known of what one of both can do, and ``unread`` says that one of both was not
    read whole, so that there may be more.
    """
    was, now = capabilities_of_version(before), capabilities_of_version(after)
    old, new = _files(before), _files(after)
    return {
        "known": was.known and now.known,
        "unread": was.unread or now.unread,
        "gained": [name for name in now.names if name not in was.names],
        "lost": [name for name in was.names if name not in now.names],
        "kept": [name for name in now.names if name in was.names],
        "added": len(new.keys() - old.keys()),
        "removed": len(old.keys() - new.keys()),
        "changed": sum(1 for path in new.keys() & old.keys() if new[path] != old[path]),
    }


def _files(version: SkillVersion) -> dict[str, tuple[str, bool]]:
    return {file["path"]: (file["sha256"], bool(file.get("executable"))) for file in version.manifest}
