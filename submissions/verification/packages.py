"""Find the skills in a snapshot, and read one of them completely."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from submissions.source.blobs import read_blob, read_blobs_in_batches, write_tree
from submissions.source.git import Snapshot
from submissions.source.tree_entries import TreeEntry, below, odd_name
from submissions.source.wanted import Wanted
from submissions.verification.errors import InvalidPackage, TooManySkills
from submissions.verification.findings import Finding, FindingKind, strongest_first
from submissions.verification.frontmatter import FrontmatterError, problem, read_skill_md
from submissions.verification.manifest import Manifest, lint, read_manifest
from submissions.verification.structure import PackageLimits, capabilities_of, check_entries, check_files
from vskill.hidden_characters import visible

_SKILL_FILE = "SKILL.md"
# How much of each file `check_files` and `capabilities_of` get to see.
_BEGINNING_BYTES = 1024


@dataclass(frozen=True)
class FoundSkill:
    """A folder with a SKILL.md; ``problems`` are sentences, empty when the skill can be submitted.

    ``path`` is '' for the root of the repository. ``name`` is that of the folder when the frontmatter gives none.
    """

    path: str
    name: str
    description: str
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class PackageFile:
    """One file of a package: its path inside the package, its size in bytes, its SHA-256 in hex."""

    path: str
    size: int
    sha256: str
    executable: bool


@dataclass(frozen=True)
class SkillPackage:
    """A valid skill, written to ``root``; ``findings`` do not stop it.

    ``skill_md`` has no byte-order mark and LF line ends. ``content_hash`` comes from ``hash_files``. ``capabilities``
    are those that the types of its files show.
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


def skill_files_below(folder: str, limits: PackageLimits | None = None) -> Wanted:
    """Return what ``find_skills`` has to fetch: the SKILL.md files below ``folder`` ('' for the whole repository).

    Beyond ``limits.skills`` no file is wanted, because none will be read.
    """
    most = (limits or PackageLimits()).skills

    def choose(entries: Sequence[TreeEntry]) -> Sequence[TreeEntry]:
        found = list(_skill_files(entries).values())
        return found if len(found) <= most else ()

    return Wanted(folder, choose)


def files_of_package(path: str, limits: PackageLimits | None = None) -> Wanted:
    """Return what ``read_package`` has to fetch: the files below ``path`` ('' for the root of the repository).

    Beyond ``limits.files`` only the SKILL.md is wanted, because no other file will be read.
    """
    folder, most = path.strip("/"), (limits or PackageLimits()).files

    def choose(entries: Sequence[TreeEntry]) -> Sequence[TreeEntry]:
        if len(entries) <= most:
            return entries
        skill_file = _skill_files(entries).get(folder)
        return () if skill_file is None else (skill_file,)

    return Wanted(folder, choose)


async def find_skills(snapshot: Snapshot, limits: PackageLimits | None = None) -> list[FoundSkill]:
    """List every folder with a SKILL.md, sorted by path, the root and nested folders included.

    Only the SKILL.md files are read, on other threads than that of the event loop. A broken skill is listed with its
    problems. Raises TooManySkills beyond ``limits.skills``.
    """
    limits = limits or PackageLimits()
    skill_files = await asyncio.to_thread(_skill_files, snapshot.entries)
    if len(skill_files) > limits.skills:
        raise TooManySkills(
            f"The repository holds {len(skill_files):,} skills; {limits.skills:,} can be listed at once. "
            "Submit one of its folders, or split the repository."
        )
    return await _describe_all(snapshot, skill_files.values(), limits)


async def _describe_all(snapshot: Snapshot, entries: Collection[TreeEntry], limits: PackageLimits) -> list[FoundSkill]:
    def describe(pairs: Iterable[tuple[TreeEntry, bytes | None]]) -> list[FoundSkill]:
        return [_describe(entry, content, limits) for entry, content in pairs]

    def split() -> tuple[list[TreeEntry], list[FoundSkill]]:
        readable = [entry for entry in entries if _is_readable(entry, limits)]
        return readable, describe((entry, None) for entry in entries if not _is_readable(entry, limits))

    readable, found = await asyncio.to_thread(split)
    async for batch in read_blobs_in_batches(snapshot, readable):
        found += await asyncio.to_thread(describe, batch)
    return await asyncio.to_thread(sorted, found, key=lambda skill: skill.path)


def _describe(entry: TreeEntry, content: bytes | None, limits: PackageLimits) -> FoundSkill:
    folder = _folder_of(entry.path)
    skill_file = _read_skill_file(folder, entry, content, limits)
    problems = [finding.title for finding in skill_file.findings if finding.kind is FindingKind.FORMAT]
    reason = odd_name(folder) if folder else None
    if reason is not None:
        problems.append(f"The folder has a name that cannot be used: {reason}")
    name = skill_file.manifest.name or _name_of(folder)
    return FoundSkill(folder, visible(name, 100), visible(skill_file.manifest.description), tuple(problems))


async def read_package(
    snapshot: Snapshot, path: str, *, destination: Path, limits: PackageLimits | None = None
) -> SkillPackage:
    """Check the skill in the folder ``path`` ('' for the root) of ``snapshot`` and write it into ``destination``.

    ``destination`` is an empty folder, which the caller removes; after an error it may hold some files. Raises
    InvalidPackage with every format problem at once, those that exceed ``limits`` included, and the errors of
    ``source.blobs``.
    """
    limits = limits or PackageLimits()
    path = path.strip("/")
    entries = await asyncio.to_thread(below, snapshot.entries, path)
    entry = _skill_files(entries).get("")
    if entry is None:
        raise _no_skill(path, entries)
    content = await read_blob(snapshot, entry) if _is_readable(entry, limits) else None
    skill_file = _read_skill_file(path, entry, content, limits)
    findings = [*check_entries(entries, limits), *skill_file.findings]
    _refuse_bad_format(path, findings)
    written = await write_tree(snapshot, path, destination, max_files=limits.files, max_bytes=limits.total_bytes)
    files, beginnings = _measure(destination, written)
    findings += check_files(beginnings)
    _refuse_bad_format(path, findings)
    manifest = skill_file.manifest
    return SkillPackage(
        root=destination,
        files=files,
        content_hash=hash_files(files),
        name=manifest.name,
        description=manifest.description,
        license=manifest.license,
        compatibility=manifest.compatibility,
        metadata=manifest.metadata,
        version=manifest.version,
        skill_md=skill_file.text,
        findings=strongest_first(findings),
        capabilities=capabilities_of(beginnings),
    )


def hash_files(files: Iterable[PackageFile]) -> str:
    """Return the content hash of a package: 64 hex digits that depend on paths and bytes alone.

    It is the SHA-256 of one record per file, sorted by the UTF-8 bytes of the path. A record is the path in UTF-8, a
    zero byte, the file's SHA-256 as 64 lower-case hex digits, and a line feed. A path holds neither zero bytes nor
    line feeds, so two different packages cannot give the same records. Modes and times are not part of it.
    """
    digest = hashlib.sha256()
    for record in sorted((file.path.encode(), file.sha256.encode("ascii")) for file in files):
        digest.update(b"\0".join(record) + b"\n")
    return digest.hexdigest()


def _measure(root: Path, entries: Iterable[TreeEntry]) -> tuple[tuple[PackageFile, ...], dict[str, bytes]]:
    """Return the files as they are on disk, and the first bytes of each by its path."""
    files: list[PackageFile] = []
    beginnings: dict[str, bytes] = {}
    for entry in entries:
        content = (root / entry.path).read_bytes()
        files.append(PackageFile(entry.path, len(content), hashlib.sha256(content).hexdigest(), entry.executable))
        beginnings[entry.path] = content[:_BEGINNING_BYTES]
    return tuple(files), beginnings


def _skill_files(entries: Iterable[TreeEntry]) -> dict[str, TreeEntry]:
    """Return the skill file of every folder that has one; the spelling SKILL.md wins over any other."""
    found: dict[str, TreeEntry] = {}
    for entry in entries:
        if entry.path.rpartition("/")[2].lower() != _SKILL_FILE.lower():
            continue
        folder = _folder_of(entry.path)
        if folder not in found or entry.path.endswith(_SKILL_FILE):
            found[folder] = entry
    return found


def _is_readable(entry: TreeEntry, limits: PackageLimits) -> bool:
    return entry.is_regular and (entry.size or 0) <= limits.skill_md_bytes


@dataclass(frozen=True)
class _SkillFile:
    """One SKILL.md; ``text`` and ``manifest`` are empty when it cannot be read, and ``findings`` say why."""

    text: str
    manifest: Manifest
    findings: list[Finding]


def _read_skill_file(folder: str, entry: TreeEntry, content: bytes | None, limits: PackageLimits) -> _SkillFile:
    """Read the skill file of ``folder``; ``content`` is None when it is a link, a submodule or too large."""
    findings: list[Finding] = []
    if not entry.path.endswith(_SKILL_FILE):
        findings.append(
            lint("skill-file-case", "The file is not spelled SKILL.md", entry.path, "Rename it to SKILL.md.")
        )
    if content is None:
        if entry.is_regular:
            title = f"SKILL.md is larger than {limits.skill_md_bytes // 1024} KiB"
            advice = "Move details into files of their own that SKILL.md names."
        else:
            title, advice = "SKILL.md is a link or a submodule, not a file", "Commit SKILL.md as a plain file."
        return _SkillFile("", Manifest(), [*findings, problem("skill-file", title, file=entry.path, advice=advice)])
    try:
        document = read_skill_md(content, file=entry.path, max_bytes=limits.frontmatter_bytes)
    except FrontmatterError as error:
        return _SkillFile("", Manifest(), [*findings, error.finding])
    manifest = read_manifest(document.fields, folder=_name_of(folder), file=entry.path)
    return _SkillFile(document.text, manifest, [*findings, *manifest.findings])


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


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _name_of(folder: str) -> str:
    return folder.rpartition("/")[2]
