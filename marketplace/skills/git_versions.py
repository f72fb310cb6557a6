"""Which versions git gives: each that has a tag in the repository of its skill, and those that share a repository."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from django.db.models import QuerySet

from marketplace.artifacts.git_names import is_meant_for_git
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.visibility import fetchable_versions, light_versions
from vskill.environments import WorkerEnv

# Of a skill: the newest versions that have a tag, and the bytes of all their files together.
MOST_VERSIONS: Final = 20
MOST_BYTES: Final = 64 * 1024 * 1024
# Of several skills in one repository.
MOST_SKILLS: Final = 100

_One = TypeVar("_One")


def is_fit_for_git(version: SkillVersion) -> bool:
    """Return whether git would give exactly the files of a version."""
    return not any(is_meant_for_git(file["path"]) for file in version.manifest)


def has_tag(env: WorkerEnv, skill: SkillEntry, version: SkillVersion) -> bool:
    """Return whether the repository of a skill has a tag of a version; that of the latest always has one."""
    if not is_fit_for_git(version):
        return False
    return version.version == skill.latest_version or any(one.pk == version.pk for one in newest_versions(env, skill))


def newest_versions(env: WorkerEnv, skill: SkillEntry) -> list[SkillVersion]:
    """Return the newest versions, of which those have a tag that are fit for git; no yanked or quarantined one."""
    versions = fetchable_versions(SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill))
    newest: QuerySet[SkillVersion] = light_versions(versions.filter(yanked_at__isnull=True)).order_by("-ordinal")
    taken: list[SkillVersion] = []
    size = 0
    for one in newest[:MOST_VERSIONS]:
        size += one.size
        if size > MOST_BYTES:
            break
        taken.append(one)
    return taken


def sharing(
    offered: Iterable[_One], version_of: Callable[[_One], SkillVersion], is_fit: Callable[[_One], bool]
) -> list[_One]:
    """Return those of ``offered`` that one repository or list of plugins holds: the first that fit into its bounds."""
    taken: list[_One] = []
    size = 0
    for one in offered:
        size += version_of(one).size
        if size > MOST_BYTES or len(taken) == MOST_SKILLS:
            break
        if is_fit(one):
            taken.append(one)
    return taken
