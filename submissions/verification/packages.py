"""Read one skill of a commit or of a folder completely."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from submissions.source.blobs import read_ahead, read_blob, write_files
from submissions.source.file_source import FileSource
from submissions.source.lfs.objects import LfsSource
from submissions.source.tree_entries import TreeEntry, below
from submissions.source.wanted import Wanted
from submissions.verification.errors import InvalidPackage
from submissions.verification.findings import Finding, FindingKind, strongest_first
from submissions.verification.format_findings import problem
from submissions.verification.lfs_files import fetch_lfs_files
from submissions.verification.links import Astray, Links
from submissions.verification.package_contents import PackageFile, hash_files, inspect_files
from submissions.verification.package_plan import plan_package, read_links, without_system_files
from submissions.verification.skill_files import SkillFile, is_readable, read_skill_file, skill_files
from submissions.verification.structure import PackageLimits
from vskill.hidden_characters import visible

# How many files of several packages are fetched at once.
_TOGETHER = 4000


@dataclass(frozen=True)
class SkillPackage:
    """A valid skill, written to ``root``; ``findings`` do not stop it.

    ``skill_md`` has no byte-order mark and LF line ends. ``content_hash`` comes from ``hash_files``. ``capabilities``
    are those that the types of its files show. ``inert`` are the files, as findings name them, that cannot run.
    """

    root: Path
    files: tuple[PackageFile, ...]
    content_hash: str
    name: str
    description: str
    license: str
    compatibility: str
    metadata: dict[str, str]
    version: str
    skill_md: str
    findings: tuple[Finding, ...] = ()
    capabilities: tuple[str, ...] = ()
    inert: frozenset[str] = frozenset()


def files_of_package(path: str, limits: PackageLimits | None = None) -> Wanted:
    """Return what ``read_package`` has to fetch: the files below ``path`` ('' for the root of the repository).

    Beyond ``limits.files`` only the SKILL.md is wanted, because no other file will be read.
    """
    folder, most = path.strip("/"), (limits or PackageLimits()).files

    def choose(entries: Sequence[TreeEntry]) -> Sequence[TreeEntry]:
        kept = without_system_files(entries)
        if len(kept) <= most:
            return kept
        skill_file = skill_files(entries).get(folder)
        return () if skill_file is None else (skill_file,)

    return Wanted(folder, choose)


def files_of_packages(paths: Collection[str], limits: PackageLimits | None = None) -> Wanted:
    """Return what ``read_package`` has to fetch for all of ``paths``, as far as ``_TOGETHER`` files reach."""
    folders = {path.strip("/") for path in paths}

    def choose(entries: Sequence[TreeEntry]) -> Sequence[TreeEntry]:
        inside: dict[str, list[TreeEntry]] = {folder: [] for folder in folders}
        for entry in entries:
            folder = entry.path
            while folder:
                folder = folder.rpartition("/")[0]
                if folder in inside:
                    inside[folder].append(entry)
        chosen: dict[str, TreeEntry] = {}
        for folder, below_it in inside.items():
            of_package = files_of_package(folder, limits).choose(below_it)
            if len(chosen) + len(of_package) <= _TOGETHER:
                chosen |= {entry.path: entry for entry in of_package}
        return list(chosen.values())

    return Wanted("", choose)


async def read_package(
    source: FileSource,
    path: str,
    *,
    destination: Path,
    limits: PackageLimits | None = None,
    lfs: LfsSource | None = None,
) -> SkillPackage:
    """Check the skill in the folder ``path`` ('' for the root) of ``source`` and write it into ``destination``.

    ``destination`` is an empty folder, which the caller removes; after an error it may hold some files. Beside the
    files of the package it holds what is in their archives (see ``inspect_files``). What is kept in Git LFS comes from
    ``lfs`` or, without it, stays a pointer. Raises InvalidPackage with every format problem at once, those that exceed
    ``limits`` included, and the errors of ``source.blobs`` and of ``lfs``.
    """
    limits = limits or PackageLimits()
    path = path.strip("/")
    entries = await asyncio.to_thread(below, source.entries, path)
    entry = skill_files(entries).get("")
    if entry is None:
        raise _no_skill(path, entries)
    source = await read_ahead(source, entries)
    targets = await read_links(source, entries)
    skill_file = await _skill_file(source, path, entry, Links(path, _by_path(entries), targets), limits)
    plan = await asyncio.to_thread(plan_package, path, entries, targets, limits)
    findings = [*plan.findings, *skill_file.findings]
    _refuse_bad_format(path, findings)
    files = await fetch_lfs_files(source, plan.files, lfs, limits)
    if lfs is not None and files.fetched:
        # Again, because rules about sizes are about the files and not about their pointers.
        sized = files.with_their_sizes(entries, plan.files)
        findings = [*plan_package(path, sized, targets, limits).findings, *skill_file.findings, *files.findings]
    await write_files(source, plan.files, destination, max_files=limits.files, max_bytes=limits.total_bytes)
    if lfs is not None:
        await asyncio.to_thread(files.put_into, destination, lfs.folder)
    contents = await asyncio.to_thread(inspect_files, destination, plan.files, not_fetched=files.reasons)
    files.check(contents.files)
    manifest = skill_file.manifest
    return SkillPackage(
        root=destination,
        files=contents.files,
        content_hash=hash_files(contents.files),
        name=manifest.name,
        description=manifest.description,
        license=manifest.license,
        compatibility=manifest.compatibility,
        metadata=manifest.metadata,
        version=manifest.version,
        skill_md=skill_file.text,
        findings=strongest_first([*findings, *contents.findings]),
        capabilities=contents.capabilities,
        inert=contents.inert,
    )


def _by_path(entries: Iterable[TreeEntry]) -> dict[str, TreeEntry]:
    return {entry.path: entry for entry in without_system_files(entries)}


async def _skill_file(
    source: FileSource, folder: str, entry: TreeEntry, links: Links, limits: PackageLimits
) -> SkillFile:
    file = links.file_of(entry)
    if isinstance(file, Astray):
        return read_skill_file(folder, entry, None, limits, astray=file)
    content = await read_blob(source, file) if is_readable(file, limits) else None
    return await asyncio.to_thread(read_skill_file, folder, file, content, limits)


def _refuse_bad_format(path: str, findings: Iterable[Finding]) -> None:
    """Raise InvalidPackage when any finding is of the kind that stops a package."""
    ordered = strongest_first(findings)
    stopping = [finding for finding in ordered if finding.kind is FindingKind.FORMAT]
    if stopping:
        more = f" and {len(stopping) - 1} more" if len(stopping) > 1 else ""
        where = visible(path) or "the root of the repository"
        raise InvalidPackage(f"The skill in {where} cannot be checked: {stopping[0].title}{more}.", ordered)


def _no_skill(path: str, entries: Collection[TreeEntry]) -> InvalidPackage:
    """Return the error for a folder without a SKILL.md; ``entries`` are what lies below it."""
    where = visible(path) or "the root of the repository"
    finding = problem(
        "skill-file",
        "There is no SKILL.md" if entries else "There is no such folder",
        file=path,
        advice="Submit the folder that holds the SKILL.md of the skill.",
    )
    return InvalidPackage(f"There is no skill in {where}: {finding.title}.", [finding])
