"""The repositories in which published skills are offered: one of each skill, each publisher and each collection.

Each holds plugins, a folder for each skill with manifests of our own and the files of one version, and catalogues of
them. A commit has no parents: no version is reachable through another one, so what is withdrawn is in no repository.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from marketplace.addresses import catalogue_name
from marketplace.git.archive_trees import UnfitForGit, archive_tree_id, read_archive_tree
from marketplace.git.catalogues import catalogue_files, plugin_files, plugin_folder
from marketplace.git.objects import BLOB, Folder, Object, commit
from marketplace.git.packs import PackPlan, plan_pack
from marketplace.git.protocol import HEAD, MAIN
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.git_versions import newest_versions, sharing
from vskill.environments import WorkerEnv

# So that the bytes are those that were checked on every system.
_ATTRIBUTES: Final = b"* -text\n"


@dataclass(frozen=True, slots=True)
class Plugin:
    """A skill as it is offered: the ``slug`` that it is named by, a version of it, and the ``handle`` of its publisher.

    No commit depends on the handle.
    """

    slug: str
    version: SkillVersion
    handle: str = ""


@dataclass(frozen=True)
class Commit:
    """A commit of some plugins; ``made`` are its own objects, the commit itself the last of them."""

    plugins: tuple[Plugin, ...]
    made: tuple[Object, ...]

    @property
    def id(self) -> bytes:
        """Return the id, 20 bytes."""
        return self.made[-1].id


@dataclass(frozen=True)
class Repository:
    """The commits of a repository by the names of their refs; ``HEAD`` is the first."""

    refs: dict[str, Commit]

    @property
    def ids(self) -> dict[str, bytes]:
        """Return the ids by the names of the refs."""
        return {name: one.id for name, one in self.refs.items()}

    def wanted(self, wants: Iterable[bytes]) -> list[Commit] | None:
        """Return the commits with these ids, or ``None`` where one of them is not here."""
        known = {one.id: one for one in self.refs.values()}
        found = [known.get(one) for one in wants]
        return None if None in found else [one for one in found if one is not None]


def make_commit(env: WorkerEnv, name: str, plugins: Sequence[Plugin], message: str) -> Commit:
    """Return the commit of some plugins, with catalogues called ``name``; the same plugins always make the same one.

    Raises ``UnfitForGit`` as ``archive_tree_id`` does. Its time is that of its newest version.
    """
    root = Folder()
    blobs = []
    files = {".gitattributes": _ATTRIBUTES, **catalogue_files(name, plugins)}
    for one in plugins:
        files |= plugin_files(one)
        root.add_tree(f"{plugin_folder(one.slug)}/skills/{one.slug}", archive_tree_id(env, one.version.zip_sha256))
    for path, content in files.items():
        blob = Object(BLOB, content)
        blobs.append(blob)
        root.add_file(path, blob.id)
    trees = root.trees()
    moment = max(one.version.created_at for one in plugins)
    return Commit(tuple(plugins), (*blobs, *trees, commit(trees[-1].id, message, moment)))


def skill_repository(env: WorkerEnv, skill: SkillEntry, latest: SkillVersion) -> Repository:
    """Return the repository of a skill: its latest version as the branch, and a tag of it and of its newest ones.

    Yanked versions and those in quarantine have none. Raises ``UnfitForGit`` where git would not give the latest.
    """
    head = version_commit(env, skill.slug, latest)
    # A skill that goes on publishing for an older line has its latest version behind its newest ones.
    refs = {HEAD: head, MAIN: head, f"refs/tags/{latest.version}": head}
    for one in newest_versions(env, skill):
        try:
            refs[f"refs/tags/{one.version}"] = version_commit(env, skill.slug, one)
        except UnfitForGit:
            # This one has no tag; the others do.
            continue
    return Repository(refs)


def version_commit(env: WorkerEnv, slug: str, version: SkillVersion) -> Commit:
    """Return the commit by which a version is pinned; it depends on nothing but the version and the slug."""
    message = f"{slug} {version.version}\n\nContent hash: {version.content_hash}"
    return make_commit(env, catalogue_name(slug), [Plugin(slug, version)], message)


def shared_repository(env: WorkerEnv, name: str, title: str, offered: Iterable[Plugin]) -> Repository | None:
    """Return the repository of several skills with the newest versions that fit, or ``None`` where there is none.

    ``name`` is that of its catalogues, and ``title`` the message of its commit. At most ``MOST_SKILLS`` with
    ``MOST_BYTES`` together are taken, the first ones, without those that git would not give.
    """
    plugins = fitting(env, offered)
    if not plugins:
        return None
    head = make_commit(env, name, plugins, title)
    return Repository({HEAD: head, MAIN: head})


def fitting(env: WorkerEnv, offered: Iterable[Plugin]) -> list[Plugin]:
    """Return those of ``offered`` that one repository or catalogue holds; see ``shared_repository``."""
    return sharing(offered, lambda one: one.version, lambda one: _is_fit(env, one))


def plan(env: WorkerEnv, commits: Iterable[Commit]) -> PackPlan:
    """Return the plan of the pack with all of ``commits``."""
    wanted = list(commits)
    archives = dict.fromkeys(one.version.zip_sha256 for commit in wanted for one in commit.plugins)
    made = (one for commit in wanted for one in commit.made)
    return plan_pack(made, (read_archive_tree(env, sha256) for sha256 in archives))


def _is_fit(env: WorkerEnv, plugin: Plugin) -> bool:
    try:
        archive_tree_id(env, plugin.version.zip_sha256)
    except UnfitForGit:
        return False
    return True
