"""Find out which skills a repository holds: fetch the SKILL.md files of one commit, and describe each."""

from __future__ import annotations

import asyncio
import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace

from marketplace.skills.sources import KnownSkill, note_folders, skills_of_repository
from submissions.discovered import DiscoveredSkill, Discovery
from submissions.planning import plan
from submissions.source.fetching import fetch, repository_url, scratch_folder
from submissions.source.git import Snapshot
from submissions.source.presence import skill_folders_in
from submissions.source.tree_entries import TreeEntry, odd_name
from submissions.source.urls import RepositoryURL
from submissions.verification.found_skills import FoundSkill, find_skills, skill_files_below
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.hidden_characters import visible
from vskill.kv.threads import readers, writers

__all__ = ["DiscoveredSkill", "Discovery", "NoSkillFound", "discover", "discover_repository", "folder_of", "select"]


class NoSkillFound(VskillError):
    """A repository holds no skill, or not the one that was asked for; nothing was submitted."""

    code = "no_skill_found"


def _source_digest(entries: Sequence[TreeEntry], paths: Sequence[str], folder: str) -> str:
    """Return the digest of the files below ``folder`` among ``entries``, which are sorted by ``paths``."""
    # All paths below a folder begin alike, so they lie together; "0" is the character after "/".
    first, end = (bisect_left(paths, f"{folder}/"), bisect_left(paths, f"{folder}0")) if folder else (0, len(paths))
    start = len(folder) + 1 if folder else 0
    digest = hashlib.sha256()
    for entry in entries[first:end]:
        digest.update(f"{entry.mode} {entry.oid} {entry.path[start:]}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _discovered(entries: Iterable[TreeEntry], found: Iterable[FoundSkill]) -> tuple[DiscoveredSkill, ...]:
    ordered = sorted(entries, key=lambda entry: entry.path)
    paths = [entry.path for entry in ordered]
    return tuple(
        DiscoveredSkill(
            _showable(one.path),
            one.name,
            one.description,
            one.problems,
            # A skill with problems is never submitted, and one in a very deep folder would take long to digest.
            "" if one.problems else _source_digest(ordered, paths, one.path),
            one.notes,
            one.internal,
        )
        for one in found
    )


def _within(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def _showable(path: str) -> str:
    # A folder with an odd name is listed but never submitted, and its name may not even be valid UTF-8.
    return path if odd_name(path) is None else visible(path)


async def discover(env: WorkerEnv, url: str, *, path: str = "", note: bool = True) -> Discovery:
    """Fetch the trees and the SKILL.md files of the repository at ``url``, and list its skills, broken ones included.

    The address of a page (``/tree/main/skills/x``) lists the skills below that folder, and one that names a skill
    (``owner/repository@name``) that skill. ``path`` narrows the list down to a folder; what lies beside is then neither
    fetched nor counted. Folders with one content are one skill. With ``note``, published skills that the repository no
    longer has are marked. Raises the errors of ``submissions.source``, and ``NoSkillFound``.
    """
    return await discover_repository(env, repository_url(env, url), path=path, note=note)


async def discover_repository(
    env: WorkerEnv, repository: RepositoryURL, *, path: str = "", note: bool = True
) -> Discovery:
    """List the skills of a repository whose address has been normalised.

    ``path`` and ``note`` are those of ``discover``, whose errors it raises.
    """
    wanted = folder_of(path)
    # Read before the commit is, so that nothing is said of what is published from a newer one meanwhile.
    known = await readers.run(skills_of_repository, env, repository.url)
    async with scratch_folder() as scratch:
        snapshot = await fetch(env, repository, scratch, wanted=skill_files_below(wanted))
        place, folder = snapshot.place, wanted or snapshot.place.path
        if not _within(folder, place.path):
            raise NoSkillFound(
                f"The folder {visible(folder)!r} is not in {visible(place.path)!r}, which the address names. "
                "Nothing was submitted. Submit the address of the repository, or that of one folder."
            )
        gone = await gone_folders(env, known, snapshot, note=note)
        found = [one for one in await find_skills(snapshot) if place.skill in ("", one.name)]
        if not found:
            where = f"the folder {visible(folder)!r}" if folder else "that repository"
            if place.skill:
                raise NoSkillFound(f"No skill in {where} is called {place.skill!r}. Nothing was submitted.")
            raise NoSkillFound(
                f"There is no skill in {where}: no folder holds a SKILL.md. Nothing was submitted. "
                "A skill is a folder with a SKILL.md that starts with its name and description."
            )
        skills = await asyncio.to_thread(_discovered, snapshot.entries, found)
        named = bool(place.skill) or (bool(folder) and [one.path for one in found] == [folder])
        planned = await readers.run(plan, env, repository.url, skills, gone)
        return Discovery(repository.url, snapshot.commit_sha, planned, snapshot.ref, named)


async def gone_folders(
    env: WorkerEnv, known: Iterable[KnownSkill], snapshot: Snapshot, *, note: bool
) -> tuple[str, ...]:
    """Return the folders of ``known`` skills that ``snapshot``, the newest commit of a branch, no longer has.

    With ``note`` their skills, which are those of ``env``, are marked. A tag and a commit that is named by its id may
    be older than what was published, so that they tell nothing.
    """
    if snapshot.place.is_commit or snapshot.ref.startswith("refs/tags/"):
        return ()
    # An earlier release did not write down which branch it was.
    refs = (snapshot.ref, "") if snapshot.ref == "HEAD" else (snapshot.ref,)
    of_branch = [one for one in known if one.source_ref in refs]
    if not of_branch:
        return ()
    there = await skill_folders_in(snapshot, [one.path for one in of_branch])
    gone = tuple(sorted({one.path for one in of_branch} - there))
    if note:
        await writers.run(note_folders, env, of_branch, gone, snapshot.commit_sha)
    return gone


def folder_of(path: str) -> str:
    """Return the folder that a person names by its path or by that of the SKILL.md in it; '' for the root."""
    return path.strip("/").removesuffix("/SKILL.md").removesuffix("SKILL.md").strip("/")


def select(discovery: Discovery, *, path: str = "", name: str = "") -> Discovery:
    """Return the discovery reduced to one skill, by ``path`` or else by ``name``; raise ``NoSkillFound`` where it has
    no such skill."""
    path = folder_of(path)
    if not path and not name:
        return discovery
    chosen = tuple(one for one in discovery.skills if (path in (one.path, *one.also_at) if path else one.name == name))
    if not chosen:
        known = ", ".join(sorted(one.path or one.name for one in discovery.skills)[:20])
        raise NoSkillFound(f"That repository has no skill {path or name!r}. Nothing was submitted. It has: {known}.")
    return replace(discovery, skills=chosen, named=True)
