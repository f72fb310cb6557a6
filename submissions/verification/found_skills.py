"""Find the skills in a commit or a folder, and say of each what its SKILL.md and the list of its files show."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from submissions.source.blobs import read_blobs_in_batches
from submissions.source.file_source import FileSource
from submissions.source.tree_entries import TreeEntry, below, odd_name
from submissions.source.wanted import Wanted
from submissions.verification.errors import TooManySkills
from submissions.verification.findings import Finding, FindingKind, Severity, strongest_first
from submissions.verification.lfs_attributes import LFS_FILE, LfsAttributes
from submissions.verification.links import Astray, Links
from submissions.verification.package_plan import plan_package, read_links, without_system_files
from submissions.verification.skill_files import folder_of, is_readable, name_of, read_skill_file, skill_files
from submissions.verification.structure import PackageLimits, fetched_note, limit_per_rule
from vskill.hidden_characters import visible

# Links and attribute files that are fetched for a list. More would cost more than they tell.
_MOST_BESIDE = 500
_ATTRIBUTES_BYTES = 64 * 1024


@dataclass(frozen=True)
class FoundSkill:
    """A folder with a SKILL.md; ``problems`` are sentences, empty when the skill can be submitted.

    ``path`` is '' for the root of the repository. ``name`` is that of the folder when the frontmatter gives none.
    ``notes`` are sentences about what does not stop it; those that hold it for a person say so. An ``internal`` skill
    is submitted only by name.
    """

    path: str
    name: str
    description: str
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    internal: bool = False


def skill_files_below(folder: str, limits: PackageLimits | None = None) -> Wanted:
    """Return what ``find_skills`` has to fetch below ``folder`` ('' for the whole repository).

    These are the SKILL.md files, the links, and the files that say what is kept in Git LFS. Beyond ``limits.skills`` no
    file is wanted, because none will be read.
    """
    most = (limits or PackageLimits()).skills

    def choose(entries: Sequence[TreeEntry]) -> Sequence[TreeEntry]:
        found = list(skill_files(entries).values())
        if len(found) > most:
            return ()
        beside = [entry for entry in entries if entry.is_link or _is_attributes(entry)]
        return [*found, *beside[: min(_MOST_BESIDE, most - len(found))]]

    return Wanted(folder, choose)


async def find_skills(source: FileSource, limits: PackageLimits | None = None) -> list[FoundSkill]:
    """List every folder with a SKILL.md, sorted by path, the root and nested folders included.

    Only the SKILL.md files, links and attributes are read, on other threads than that of the event loop. A broken skill
    is listed with its problems. Raises TooManySkills beyond ``limits.skills``.
    """
    limits = limits or PackageLimits()
    found = await asyncio.to_thread(skill_files, source.entries)
    if len(found) > limits.skills:
        raise TooManySkills(
            f"The repository holds {len(found):,} skills; {limits.skills:,} can be listed at once. "
            "Submit one of its folders, or split the repository."
        )
    links = await read_links(source, source.entries)
    linked = await asyncio.to_thread(_links_among, found.values())
    if linked:
        source = await source.with_more(await asyncio.to_thread(_targets, source.entries, links, linked))
    attributes = LfsAttributes()
    small = await asyncio.to_thread(_attributes_among, source.entries)
    async for batch in read_blobs_in_batches(source, small):
        for entry, content in batch:
            attributes.add(folder_of(entry.path), content)
    tree = await asyncio.to_thread(_Tree, source.entries, links, attributes)
    return await _describe_all(source, tree, found.values(), limits)


def _targets(entries: Sequence[TreeEntry], links: Mapping[str, bytes], linked: Iterable[TreeEntry]) -> list[TreeEntry]:
    """Return the files that the SKILL.md of some skills lead to as links."""
    tree = _Tree(entries, links, LfsAttributes())
    files = [tree.file_of(entry) for entry in linked]
    return [file for file in files if not isinstance(file, Astray)]


def _links_among(entries: Iterable[TreeEntry]) -> list[TreeEntry]:
    return [one for one in entries if one.is_link]


def _attributes_among(entries: Iterable[TreeEntry]) -> list[TreeEntry]:
    return [one for one in entries if _is_attributes(one) and one.size is not None and one.size <= _ATTRIBUTES_BYTES]


def _is_attributes(entry: TreeEntry) -> bool:
    return entry.is_regular and name_of(entry.path) == LFS_FILE


class _Tree:
    """The entries of a commit in the order of their paths, what its links hold, and what is kept in Git LFS."""

    def __init__(self, entries: Iterable[TreeEntry], links: Mapping[str, bytes], attributes: LfsAttributes) -> None:
        self.entries = sorted(entries, key=lambda entry: entry.path)
        self.paths = [entry.path for entry in self.entries]
        self.links = links
        self.attributes = attributes

    def file_of(self, entry: TreeEntry) -> TreeEntry | Astray:
        """Return the file of a skill that its SKILL.md is, or leads to as a link, or why there is none."""
        if not entry.is_link:
            return entry
        folder = folder_of(entry.path)
        inside = {one.path: one for one in without_system_files(self.below(folder))}
        file = Links(folder, inside, self.links).file_of(replace(entry, path=name_of(entry.path)))
        return file if isinstance(file, Astray) else replace(file, path=entry.path)

    def below(self, folder: str) -> Sequence[TreeEntry]:
        # All paths below a folder begin alike, so they lie together; "0" is the character after "/".
        first, end = (bisect_left(self.paths, f"{folder}{one}") for one in "/0") if folder else (0, len(self.paths))
        return below(self.entries[first:end], folder)


async def _describe_all(
    source: FileSource, tree: _Tree, entries: Collection[TreeEntry], limits: PackageLimits
) -> list[FoundSkill]:
    def describe(pairs: Iterable[tuple[TreeEntry, bytes | None]]) -> list[FoundSkill]:
        return [_describe(entry, content, tree, limits) for entry, content in pairs]

    def split() -> tuple[list[TreeEntry], list[FoundSkill]]:
        files = [(entry, tree.file_of(entry)) for entry in entries]
        lost = [_describe(entry, None, tree, limits, astray=file) for entry, file in files if isinstance(file, Astray)]
        there = [file for _, file in files if not isinstance(file, Astray)]
        readable = [file for file in there if is_readable(file, limits)]
        return readable, lost + describe((file, None) for file in there if not is_readable(file, limits))

    readable, found = await asyncio.to_thread(split)
    async for batch in read_blobs_in_batches(source, readable):
        found += await asyncio.to_thread(describe, batch)
    return await asyncio.to_thread(sorted, found, key=lambda skill: skill.path)


def _describe(
    entry: TreeEntry, content: bytes | None, tree: _Tree, limits: PackageLimits, *, astray: Astray | None = None
) -> FoundSkill:
    folder = folder_of(entry.path)
    skill_file = read_skill_file(folder, entry, content, limits, astray=astray)
    plan = plan_package(folder, tree.below(folder), tree.links, limits)
    start = f"{folder}/" if folder else ""
    pointers = [fetched_note(path, None) for path in plan.files if tree.attributes.names(start + path)]
    findings = [*skill_file.findings, *plan.findings, *limit_per_rule(pointers)]
    problems = [_said(finding) for finding in findings if finding.kind is FindingKind.FORMAT]
    reason = odd_name(folder) if folder else None
    if reason is not None:
        problems.append(f"The folder has a name that cannot be used: {reason}")
    notes = [
        f"{'Will be held for a person: ' if finding.severity.rank >= Severity.HIGH.rank else ''}{_said(finding)}"
        for finding in strongest_first(findings)
        if finding.kind is not FindingKind.FORMAT and finding.severity is not Severity.INFO
    ]
    manifest = skill_file.manifest
    name = visible(manifest.name or name_of(folder), 100)
    return FoundSkill(folder, name, visible(manifest.description), tuple(problems), tuple(notes), manifest.internal)


def _said(finding: Finding) -> str:
    """Return what a finding says in one sentence, with its file, or its line in SKILL.md."""
    in_skill_md = name_of(finding.file).lower() == "skill.md"
    where = finding.file if not in_skill_md else f"line {finding.line}" if (finding.line or 1) > 1 else ""
    return f"{finding.title}{f' ({where})' if where else ''}"
