"""What a discovery returns: the skills of one commit of a repository, and what is planned for each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DiscoveredSkill:
    """A skill in a repository, and what is wrong with it; equal files have an equal ``source_digest`` (hex).

    ``problems`` and ``internal`` are those of a ``FoundSkill``; ``notes`` say what is unusual about the skill, its
    place and its name. ``also_at`` are other folders with the same content. ``continues`` is the folder, now gone, from
    which this skill was published before, ``None`` for any other. ``slug`` is the one that it has or will get, empty
    for a skill with problems; ``held_by`` is who has the plain one, where it will get a longer one. ``reserved`` says
    why its owner may not publish it under its name, and is empty where it may.
    """

    path: str
    name: str
    description: str
    problems: tuple[str, ...]
    source_digest: str
    notes: tuple[str, ...] = ()
    internal: bool = False
    also_at: tuple[str, ...] = ()
    continues: str | None = None
    slug: str = ""
    held_by: str = ""
    reserved: str = ""


@dataclass(frozen=True)
class Discovery:
    """The skills of one commit of one repository; ``ref`` is the branch or tag that it is on (see ``Snapshot``).

    ``named`` says that somebody named exactly these, by path or by name, so that internal ones are meant as well.
    """

    repo_url: str
    commit_sha: str
    skills: tuple[DiscoveredSkill, ...]
    ref: str = ""
    named: bool = False
