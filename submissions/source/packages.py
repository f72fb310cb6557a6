"""Find the skills in a snapshot, and read one of them completely."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from submissions.sandbox.tree_entries import TreeEntry, below, odd_name
from submissions.source.blobs import read_blob, read_blobs, write_tree
from submissions.source.errors import InvalidPackage, SourceError, TooManySkills
from submissions.source.frontmatter import FrontmatterError, SkillDocument, decode_skill_md, parse_skill_md, problem
from submissions.source.git import Snapshot
from submissions.source.manifest import Manifest, lint, read_manifest
from submissions.verification.findings import Finding, FindingKind, strongest_first
from submissions.verification.structure import StructureLimits, capabilities_of, check_entries, check_files
from vskill.hidden_characters import visible

_SKILL_FILE = "SKILL.md"
_HEAD_BYTES = 1024


@dataclass(frozen=True)
class PackageLimits:
    """Bounds of one skill, and of how many skills a repository may list."""

    files: int = 500
    total_bytes: int = 10 * 1024 * 1024
    code_file_bytes: int = 512 * 1024
    skill_md_bytes: int = 256 * 1024
    frontmatter_bytes: int = 16 * 1024
    skills: int = 200

    @property
    def structure(self) -> StructureLimits:
        """Return the part that the pre-scan needs."""
        return StructureLimits(self.files, self.total_bytes, self.code_file_bytes)


@dataclass(frozen=True)
class FoundSkill:
    """A folder with a SKILL.md; ``problems`` are sentences, empty when it can be submitted as it is.

    ``path`` is '' for the root of the repository. ``name`` falls back to the name of the folder.
    """

    path: str
    name: str
    description: str
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class PackageFile:
    """One file of a package: its path inside it, size in bytes, SHA-256 in hex."""

    path: str
    size: int
    sha256: str
    executable: bool


@dataclass(frozen=True)
class SkillPackage:
    """A valid skill, written to ``root``; ``findings`` are notes about its format that do not stop it.

    ``skill_md`` has no byte-order mark and LF line ends. ``content_hash`` is that of ``hash_files``. ``capabilities``
    are those that the kinds of its files show.
    """

    path: str
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


async def find_skills(snapshot: Snapshot, limits: PackageLimits | None = None) -> list[FoundSkill]:
    """List every folder with a SKILL.md, sorted by path, nested ones and the root too; reads nothing else.

    A broken skill is listed with its problem. Raises TooManySkills beyond ``limits.skills``.
    """
    limits = limits or PackageLimits()
    folders = _skill_files(snapshot.entries)
    if len(folders) > limits.skills:
        raise TooManySkills(
            f"The repository holds {len(folders):,} skills; {limits.skills:,} can be listed at once. "
            "Submit the folder of one skill, or split the repository."
        )
    readable = [entry for entry in folders.values() if entry.is_regular and (entry.size or 0) <= limits.skill_md_bytes]
    contents: dict[str, bytes] = {}
    skills: dict[str, FoundSkill] = {}
    async for entry, content in read_blobs(snapshot, readable):
        contents[entry.path] = content
        folder = _folder_of(entry.path)
        skills[folder] = _found(folder, entry, content, limits)
        # Parsing is the only work here that takes a while; others get their turn between two skills.
        await asyncio.sleep(0)
    for folder, entry in folders.items():
        if folder not in skills:
            skills[folder] = _found(folder, entry, None, limits)
    return [skills[folder] for folder in sorted(skills)]


def _found(folder: str, entry: TreeEntry, content: bytes | None, limits: PackageLimits) -> FoundSkill:
    document, findings = _read_document(entry, content, limits)
    manifest = read_manifest(document.fields, folder=_name_of(folder), file=entry.path) if document else Manifest()
    findings = [*findings, *manifest.findings]
    stopping = [finding.title for finding in findings if finding.kind is FindingKind.FORMAT]
    reason = odd_name(folder) if folder else None
    if reason is not None:
        stopping.append(f"The folder has a name that cannot be used: {reason}")
    name = manifest.name or _name_of(folder)
    return FoundSkill(folder, visible(name, 100), visible(manifest.description), tuple(stopping))


async def read_package(
    snapshot: Snapshot, path: str, *, destination: Path, limits: PackageLimits | None = None
) -> SkillPackage:
    """Check the skill in the folder ``path`` ('' for the root) and write its files into the empty ``destination``.

    Raises InvalidPackage with every problem of its format at once; then little or nothing was written, and what was
    is the caller's to remove with ``destination``.
    """
    limits = limits or PackageLimits()
    path = path.strip("/")
    entries = below(snapshot.entries, path)
    skill_file = _skill_files(entries).get("")
    if skill_file is None:
        raise _missing(snapshot, path)
    findings = check_entries(entries, limits.structure)
    content: bytes | None = None
    if skill_file.is_regular and (skill_file.size or 0) <= limits.skill_md_bytes:
        content = await read_blob(snapshot, skill_file)
    document, problems = _read_document(skill_file, content, limits)
    manifest = read_manifest(document.fields, folder=_name_of(path), file=skill_file.path) if document else Manifest()
    findings += [*problems, *manifest.findings]
    _stop_for_format(path, findings)
    assert document is not None, "a document that could not be read has a format finding"  # noqa: S101 - narrows a type
    await write_tree(snapshot, path, destination, max_files=limits.files, max_bytes=limits.total_bytes)
    files, heads = _measure(destination, entries)
    findings += check_files(heads)
    _stop_for_format(path, findings)
    return SkillPackage(
        path=path,
        root=destination,
        files=files,
        content_hash=hash_files(files),
        name=manifest.name,
        description=manifest.description,
        license=manifest.license,
        compatibility=manifest.compatibility,
        metadata=manifest.metadata,
        version=manifest.version,
        skill_md=document.text,
        findings=strongest_first(findings),
        capabilities=capabilities_of(heads),
    )


def hash_files(files: Iterable[PackageFile]) -> str:
    """Return the content hash of a package: 64 hex digits that depend on paths and bytes alone.

    It is the SHA-256 of one record a file, sorted by the UTF-8 bytes of the path: the path in UTF-8, a zero byte,
    the file's SHA-256 as 64 lower-case hex digits, a line feed. A path holds neither zero bytes nor line feeds, so
    two different packages cannot give the same records. Modes and times take no part.
    """
    digest = hashlib.sha256()
    for record in sorted((file.path.encode(), file.sha256.encode("ascii")) for file in files):
        digest.update(b"\0".join(record) + b"\n")
    return digest.hexdigest()


def _measure(root: Path, entries: Iterable[TreeEntry]) -> tuple[tuple[PackageFile, ...], dict[str, bytes]]:
    files: list[PackageFile] = []
    heads: dict[str, bytes] = {}
    for entry in sorted(entries, key=lambda entry: entry.path.encode()):
        content = (root / entry.path).read_bytes()
        files.append(PackageFile(entry.path, len(content), hashlib.sha256(content).hexdigest(), entry.executable))
        heads[entry.path] = content[:_HEAD_BYTES]
    return tuple(files), heads


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


def _read_document(
    entry: TreeEntry, content: bytes | None, limits: PackageLimits
) -> tuple[SkillDocument | None, list[Finding]]:
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
        return None, [*findings, problem("skill-file", title, file=entry.path, advice=advice)]
    try:
        text = decode_skill_md(content, file=entry.path)
        return parse_skill_md(text, file=entry.path, max_bytes=limits.frontmatter_bytes), findings
    except FrontmatterError as error:
        return None, [*findings, error.finding]


def _stop_for_format(path: str, findings: Iterable[Finding]) -> None:
    ordered = strongest_first(findings)
    stopping = [finding for finding in ordered if finding.kind is FindingKind.FORMAT]
    if stopping:
        more = f" and {len(stopping) - 1} more" if len(stopping) > 1 else ""
        where = visible(path) or "the root of the repository"
        raise InvalidPackage(f"The skill in {where} cannot be checked: {stopping[0].title}{more}.", ordered)


def _missing(snapshot: Snapshot, path: str) -> SourceError:
    where = visible(path) or "the root of the repository"
    finding = problem(
        "skill-file",
        "There is no SKILL.md" if below(snapshot.entries, path) else "There is no such folder",
        file=path,
        advice="Submit the folder that holds the SKILL.md of the skill.",
    )
    return InvalidPackage(f"There is no skill in {where}: {finding.title}.", [finding])


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _name_of(folder: str) -> str:
    return folder.rpartition("/")[2]
