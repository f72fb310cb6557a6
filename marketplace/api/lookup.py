"""Find the skill and version that a request names, or refuse in words."""

from __future__ import annotations

from dataclasses import dataclass

from marketplace.api.http import ApiCall, ApiError, parameter
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
    """Return the visible skill that has or had ``slug``.

    ``owner`` (a publisher's handle, with or without ``@``) and ``repo`` (the name of a repository) must match where
    they are given. Raises ``ApiError``: 404 where there is no such skill, 403 for one in quarantine, 410 for one that
    was deleted.
    """
    skill = find_skill_sync(env, slug.lower(), hidden=True) or find_skill_sync(env, slug, hidden=True)
    if skill is None:
        raise ApiError(404, SKILL_NOT_FOUND)
    if owner and owner.removeprefix("@").lower() not in (skill.publisher_handle, publisher_of(skill.repo_url).owner):
        raise ApiError(404, SKILL_NOT_FOUND)
    if repo and repo.lower() != publisher_of(skill.repo_url).repository:
        raise ApiError(404, SKILL_NOT_FOUND)
    if not is_visible(skill):
        raise ApiError(*_WITHHELD.get(Visibility(skill.visibility), (404, SKILL_NOT_FOUND)))
    return skill


def named_skill(call: ApiCall) -> SkillEntry:
    """Return the skill that the path names; the query parameter ``ownerHandle`` must match its owner if present."""
    owner = call.path_parameters.get("owner") or parameter(call, "ownerHandle")
    return visible_skill(call.env, call.path_parameters["slug"], owner=owner, repo=call.path_parameters.get("repo", ""))


def requested_version(call: ApiCall, skill: SkillEntry, version: str = "") -> SkillVersion:
    """Return the version that the caller or the query parameter ``version`` names, by default the latest.

    ``latest`` is the only ``tag``. Raises ``ApiError`` 404 for another one and for a version that is not there.
    """
    version = version or parameter(call, "version")
    tag = parameter(call, "tag")
    if tag and tag != "latest":
        raise ApiError(404, f"There is no tag {tag!r}; the only one is latest.")
    return exact_version(call.env, skill, version)


def exact_version(env: WorkerEnv, skill: SkillEntry, version: str) -> SkillVersion:
    """Return a fetchable version by its number, or the latest for an empty one; raise ``ApiError`` 404 for none."""
    found = find_version_sync(env, skill, version) if version or skill.latest_version else None
    if found is None:
        raise ApiError(404, "Version not found" if version else "This skill has no version that is offered.")
    return found


@dataclass(frozen=True)
class SkillWithLatest:
    """A skill and its latest version, which is ``None`` where every version is withdrawn."""

    skill: SkillEntry
    latest: SkillVersion | None


def with_latest_versions(env: WorkerEnv, skills: tuple[SkillEntry, ...] | list[SkillEntry]) -> list[SkillWithLatest]:
    """Return each skill with its latest version, read in one query."""
    numbers = {skill.pk: skill.latest_version for skill in skills}
    versions = SkillVersion.objects.using(env.database).filter(
        namespace=env.name, skill_id__in=numbers, version__in=set(numbers.values())
    )
    # Lists do not show these texts, so they are not read.
    light = versions.defer("skill_md", "findings", "manifest")
    found = {version.skill_id: version for version in light if numbers[version.skill_id] == version.version}
    return [SkillWithLatest(skill, found.get(skill.pk)) for skill in skills]


def archive_content(env: WorkerEnv, sha256: str) -> bytes:
    """Return the bytes of a stored archive by its digest (hex)."""
    content = ArchiveBlob.objects.using(env.database).values_list("content", flat=True).get(sha256=sha256)
    return bytes(content)
