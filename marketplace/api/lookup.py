"""Find what an address of the API names, or say in words why not."""

from __future__ import annotations

from dataclasses import dataclass

from marketplace.api.http import Asked, Refused, parameter
from marketplace.catalog import find_skill_sync, find_version_sync, is_visible
from marketplace.models import ArchiveBlob, SkillEntry, SkillVersion
from marketplace.records import Visibility
from marketplace.skills.publishers import publisher_of
from vskill.environments import WorkerEnv

SKILL_NOT_FOUND = "Skill not found"
_WITHHELD = {
    Visibility.QUARANTINED: (403, "This skill is quarantined: the registry withholds it and its files. Do not use it."),
    Visibility.DELETED: (410, "This skill was taken out of the registry."),
}


def visible_skill(env: WorkerEnv, slug: str, *, owner: str = "", repo: str = "") -> SkillEntry:
    """Return the skill that a name means, now or formerly; raise ``Refused`` where it is absent, withheld or another's.

    ``owner`` (a publisher's handle, perhaps with ``@``) and ``repo`` narrow it where they are given.
    """
    skill = find_skill_sync(env, slug.lower(), hidden=True) or find_skill_sync(env, slug, hidden=True)
    if skill is None:
        raise Refused(404, SKILL_NOT_FOUND)
    if owner and owner.removeprefix("@").lower() not in (skill.publisher_handle, publisher_of(skill.repo_url).owner):
        raise Refused(404, SKILL_NOT_FOUND)
    if repo and repo.lower() != publisher_of(skill.repo_url).repository:
        raise Refused(404, SKILL_NOT_FOUND)
    if not is_visible(skill):
        raise Refused(*_WITHHELD.get(Visibility(skill.visibility), (404, SKILL_NOT_FOUND)))
    return skill


def named_skill(asked: Asked) -> SkillEntry:
    """Return the skill that the path names, and that the parameter ``ownerHandle`` may narrow."""
    owner = asked.arguments.get("owner") or parameter(asked, "ownerHandle")
    return visible_skill(asked.env, asked.arguments["slug"], owner=owner, repo=asked.arguments.get("repo", ""))


def wanted_version(asked: Asked, skill: SkillEntry, version: str = "") -> SkillVersion:
    """Return the version that is asked for (by path, ``version`` or ``tag``), by default the latest."""
    version = version or parameter(asked, "version")
    tag = parameter(asked, "tag")
    if tag and tag != "latest":
        raise Refused(404, f"There is no tag {tag!r}; the only one is latest.")
    return exact_version(asked.env, skill, version)


def exact_version(env: WorkerEnv, skill: SkillEntry, version: str) -> SkillVersion:
    """Return a version that may be fetched, the latest for an empty text; raise ``Refused`` where there is none."""
    found = find_version_sync(env, skill, version) if version or skill.latest_version else None
    if found is None:
        raise Refused(404, "Version not found" if version else "This skill has no version that is offered.")
    return found


@dataclass(frozen=True)
class Offered:
    """A skill with the version that is its latest; ``None`` where every one is withdrawn."""

    skill: SkillEntry
    latest: SkillVersion | None


def with_latest_versions(env: WorkerEnv, skills: tuple[SkillEntry, ...] | list[SkillEntry]) -> list[Offered]:
    """Return skills with their latest versions, in two queries however many they are."""
    numbers = {skill.pk: skill.latest_version for skill in skills}
    versions = SkillVersion.objects.using(env.database).filter(
        namespace=env.name, skill_id__in=numbers, version__in=set(numbers.values())
    )
    # Texts that a list does not show are left in the database.
    light = versions.defer("skill_md", "findings", "manifest")
    found = {version.skill_id: version for version in light if numbers[version.skill_id] == version.version}
    return [Offered(skill, found.get(skill.pk)) for skill in skills]


def archive_content(env: WorkerEnv, sha256: str) -> bytes:
    """Return the bytes of a stored archive."""
    content = ArchiveBlob.objects.using(env.database).values_list("content", flat=True).get(sha256=sha256)
    return bytes(content)
