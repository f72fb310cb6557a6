"""What a skill's record takes over from its latest version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from marketplace.models import SkillVersion
from marketplace.records import SkillRecord
from marketplace.skills.capability_names import asked_names
from marketplace.skills.versions import highest, is_aside

MAX_TAGS: Final = 20
_MAX_TITLE: Final = 80


def with_latest(record: SkillRecord, versions: Iterable[SkillVersion]) -> SkillRecord:
    """Return ``record`` as its highest version describes it; yanked and quarantined versions do not count.

    ``versions`` are all versions of the skill. Where every one is withdrawn, ``latest_version`` becomes empty and the
    description stays. A commit of unknown age is never the latest beside others, not even where those are withdrawn.
    """
    known = list(versions)
    numbered = [version for version in known if not is_aside(version.version)]
    offered = {version.version: version for version in numbered or known if not version.withdrawn}
    number = highest(offered)
    if number is None:
        return replace(record, latest_version="")
    latest = offered[number]
    return replace(
        record,
        name=latest.name,
        display_name=display_name(latest),
        description=latest.description,
        license=latest.license,
        compatibility=latest.compatibility,
        tags=tags_of(latest),
        latest_version=latest.version,
        commit_sha=latest.commit_sha,
        content_hash=latest.content_hash,
        verdict=latest.verdict,
        verdict_summary=latest.verdict_summary,
        flag_reason=latest.flag_reason,
        capabilities=asked_names(latest.capabilities, latest.contract),
        submission_id=latest.submission_id,
    )


def kept_versions(versions: Iterable[SkillVersion]) -> int:
    """Return how many of ``versions`` are not in quarantine."""
    return sum(version.quarantined_at is None for version in versions)


def display_name(version: SkillVersion) -> str:
    """Return the title that a version's metadata declares, or else its name."""
    title = next(
        (version.metadata[key] for key in ("display-name", "displayName", "title") if version.metadata.get(key)), ""
    )
    # Control and bidirectional characters would let a title pose as something else on a page.
    shown = "".join(character for character in str(title) if character.isprintable()).strip()
    return shown[:_MAX_TITLE] or version.name


def tags_of(version: SkillVersion) -> tuple[str, ...]:
    """Return the tags that a version's metadata declares: lower case, without duplicates, at most ``MAX_TAGS``."""
    text = " ".join(str(version.metadata.get(key, "")) for key in ("tags", "keywords", "category"))
    tags = (tag.strip().lower()[:64] for tag in text.replace(",", " ").split())
    return tuple(dict.fromkeys(tag for tag in tags if tag.isprintable() and tag))[:MAX_TAGS]
