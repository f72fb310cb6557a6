"""Keep what was found in a repository for a few hours, so that its skills are looked through page by page.

A listing belongs to one commit. It is an entry that expires; its id is a digest of what it holds, so that listing the
same commit again leaves one entry.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from submissions.discovery import DiscoveredSkill, Discovery
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.codec import encode
from vskill.kv.errors import InvalidKey
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

LISTING_HOURS: Final = 6
PAGE: Final = 50
MAX_FOLDERS: Final = 500
_LONGEST_DESCRIPTION: Final = 300
_MOST_NOTES: Final = 5
_LONGEST_NOTE: Final = 200


class ListingExpired(VskillError):
    """The list of skills that was chosen from is too old or was not made here; nothing was submitted."""

    code = "listing_expired"


@dataclass(frozen=True)
class Choice:
    """What narrows a listing down: a folder ('' for all) and words that each skill's name, path or description has."""

    folder: str = ""
    words: str = ""


@dataclass(frozen=True)
class ListingPage:
    """A page of the skills that match a choice, and how many match; ``following`` is where the next page starts.

    ``folders`` are the folders below the chosen one with the number of skills in each, where there are several.
    """

    skills: tuple[DiscoveredSkill, ...]
    matching: int
    start: int
    following: int | None
    folders: tuple[tuple[str, int], ...]


def _key(listing_id: str) -> str:
    return f"listing:{listing_id}"


async def keep_listing(env: WorkerEnv, discovery: Discovery) -> str:
    """Keep a discovery for ``LISTING_HOURS`` and return the id that ``read_listing`` takes."""

    def value_and_id() -> tuple[list[object], str]:
        skills = [
            [
                *(one.path, one.name, one.description[:_LONGEST_DESCRIPTION], list(one.problems), one.source_digest),
                *([note[:_LONGEST_NOTE] for note in one.notes[:_MOST_NOTES]], one.internal),
                *(list(one.also_at), one.continues, one.slug, one.held_by, one.reserved),
            ]
            for one in discovery.skills
        ]
        value: list[object] = [discovery.repo_url, discovery.commit_sha, discovery.ref, discovery.named, skills]
        listing_id = hashlib.sha256(encode(value).encode("ascii")).hexdigest()[:32]
        return value, listing_id

    # In a thread, because there may be thousands of skills.
    value, listing_id = await asyncio.to_thread(value_and_id)
    await KVNamespace(KVEntry, env).put(_key(listing_id), value, ttl=timedelta(hours=LISTING_HOURS))
    return listing_id


def no_such_listing() -> ListingExpired:
    """Return the error for an id that no list has."""
    return ListingExpired(
        f"This list of skills is older than {LISTING_HOURS} hours or was not made here. Nothing was submitted; "
        "enter the address again."
    )


async def read_listing(env: WorkerEnv, listing_id: str) -> Discovery:
    """Return the discovery of that id; raise ``ListingExpired`` where there is none (any more)."""
    try:
        outcome = await KVNamespace(KVEntry, env).get(_key(listing_id))
    except InvalidKey:
        raise no_such_listing() from None
    if outcome.absent:
        raise no_such_listing()
    repo_url, commit_sha, ref, named, skills = outcome.require()

    def discovery() -> Discovery:
        found = tuple(
            DiscoveredSkill(
                *(path, name, description, tuple(problems), digest, tuple(notes), internal, tuple(also_at), *rest)
            )
            for path, name, description, problems, digest, notes, internal, also_at, *rest in skills
        )
        return Discovery(repo_url, commit_sha, found, ref, named)

    return await asyncio.to_thread(discovery)


def matching(discovery: Discovery, choice: Choice) -> tuple[DiscoveredSkill, ...]:
    """Return the skills of a discovery that a choice leaves, in the order of their paths."""
    folder = choice.folder.strip("/")
    words = choice.words.casefold().split()

    def matches(skill: DiscoveredSkill) -> bool:
        if folder and skill.path != folder and not skill.path.startswith(f"{folder}/"):
            return False
        text = f"{skill.path}\n{skill.name}\n{skill.description}".casefold() if words else ""
        return all(word in text for word in words)

    return tuple(skill for skill in discovery.skills if matches(skill))


def page_of(discovery: Discovery, choice: Choice, *, start: int = 0, size: int = PAGE) -> ListingPage:
    """Return the page of ``size`` skills that begins at the number ``start`` (from 0) of those that match."""
    found = matching(discovery, choice)
    start = max(0, min(start, len(found)))
    following = start + size if start + size < len(found) else None
    below = found if not choice.words else matching(discovery, Choice(choice.folder))
    return ListingPage(
        found[start : start + size], len(found), start, following, _folders(below, choice.folder.strip("/"))
    )


def _folders(skills: Iterable[DiscoveredSkill], folder: str) -> tuple[tuple[str, int], ...]:
    """Return the nearest folders below ``folder`` that divide the skills, with their counts; none where none does."""
    paths = [skill.path for skill in skills]
    while True:
        depth = folder.count("/") + 1 if folder else 0
        parents = Counter("/".join(path.split("/")[: depth + 1]) for path in paths if path.count("/") > depth)
        # A folder that holds all the others, as `skills` often does, divides nothing.
        if len(parents) == 1 and sum(parents.values()) == len(paths):
            (folder,) = parents
            continue
        return tuple(sorted(parents.items()))[:MAX_FOLDERS]
