"""Find the skill and version that a request names, or refuse in words."""

from __future__ import annotations

from dataclasses import dataclass

from marketplace.api.http import ApiCall, ApiError, parameter
from marketplace.catalog import find_skill_sync, find_version_sync, is_visible
from marketplace.models import ArchiveBlob, Collection, SkillEntry, SkillVersion
from marketplace.skill_sets.reading import find_collection, near_collections
from marketplace.skills.handles import is_named, is_of_repository, short_handle
from marketplace.skills.near_filters import near_publishers
from marketplace.skills.near_names import near_slugs, near_versions, with_near
from marketplace.skills.visibility import light_versions
from marketplace.skills.withdrawal import nothing_offered, why_withdrawn, withheld
from vskill.environments import WorkerEnv

SKILL_NOT_FOUND = "Skill not found"


def no_publisher(env: WorkerEnv, handle: str) -> ApiError:
    """Return the 404 for a publisher of whom nothing is listed, with the handles that are near."""
    near = near_publishers(env, handle)
    return ApiError(404, with_near("There is no publisher of that name", near) + ("" if near else "."))


def visible_skill(
    env: WorkerEnv, slug: str, *, owner: str = "", repo: str = "", hidden: bool = False, suggest: bool = True
) -> SkillEntry:
    """Return the visible skill that has or had ``slug``.

    ``owner`` (a publisher's handle or short handle, with or without ``@``) and ``repo`` (the name of a repository) must
    match where they are given. With ``hidden``, a withheld skill is returned as well. Raises ``ApiError``: 404 where
    there is no such skill, with names that are near unless ``suggest`` is false, and 410 with the reason for one that
    is in quarantine or was deleted.
    """
    skill = find_skill_sync(env, slug.lower(), hidden=True) or find_skill_sync(env, slug, hidden=True)
    if skill is None:
        near = near_slugs(env, slug) or near_publishers(env, owner.removeprefix("@")) if suggest else []
        raise ApiError(404, with_near(SKILL_NOT_FOUND, near))
    if (owner and not is_named(env, skill, owner)) or (repo and not is_of_repository(env, skill, repo)):
        near = [f"@{short_handle(skill.publisher_handle)}/{skill.slug}"] if suggest and is_visible(skill) else []
        raise ApiError(404, with_near(SKILL_NOT_FOUND, near))
    if not hidden and not is_visible(skill):
        reason = withheld(skill)
        raise ApiError(410, reason) if reason else ApiError(404, SKILL_NOT_FOUND)
    return skill


def named_skill(call: ApiCall, *, hidden: bool = False) -> SkillEntry:
    """Return the skill that the path names; the query parameter ``ownerHandle`` must match its owner if present.

    ``hidden`` is that of ``visible_skill``.
    """
    owner = call.path_parameters.get("owner") or parameter(call, "ownerHandle")
    repo = call.path_parameters.get("repo", "")
    return visible_skill(call.env, call.path_parameters["slug"], owner=owner, repo=repo, hidden=hidden)


def requested_version(call: ApiCall, skill: SkillEntry, version: str = "") -> SkillVersion:
    """Return the version that the caller or the query parameter ``version`` names, by default the latest.

    ``latest`` is the only ``tag``. Raises ``ApiError``: 404 for another one, and as ``exact_version`` does.
    """
    version = version or parameter(call, "version")
    tag = parameter(call, "tag")
    if tag and tag != "latest":
        raise ApiError(404, f"There is no tag {tag!r}; the only one is latest.")
    return exact_version(call.env, skill, version)


def exact_version(env: WorkerEnv, skill: SkillEntry, version: str) -> SkillVersion:
    """Return a fetchable version by its number, or the latest for an empty one.

    Raises ``ApiError``: 410 with the reason where it was withdrawn, or where every version was, and 404 with near
    versions for none.
    """
    found = find_version_sync(env, skill, version) if version or skill.latest_version else None
    if found is None:
        reason = why_withdrawn(env, skill.identity, version) if version else nothing_offered(env, skill)
        if reason:
            raise ApiError(410, reason)
        raise ApiError(404, with_near("Version not found", near_versions(env, skill, version), what="versions"))
    return found


def named_collection(call: ApiCall) -> Collection:
    """Return the collection that the path names; raise ``ApiError`` with near names where there is none."""
    slug = call.path_parameters["slug"]
    found = find_collection(call.env, slug)
    if found is None:
        near = near_collections(call.env, slug)
        raise ApiError(404, with_near("There is no collection of that name", near) + ("" if near else "."))
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
    light = light_versions(versions)
    found = {version.skill_id: version for version in light if numbers[version.skill_id] == version.version}
    return [SkillWithLatest(skill, found.get(skill.pk)) for skill in skills]


def archive_content(env: WorkerEnv, sha256: str) -> bytes:
    """Return the bytes of a stored archive by its digest (hex)."""
    content = ArchiveBlob.objects.using(env.database).values_list("content", flat=True).get(sha256=sha256)
    return bytes(content)
