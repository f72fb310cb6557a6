"""Look at the files of a package once they are written: measure them, open archives, and tell code from data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from marketplace.artifacts.fingerprints import content_hash
from submissions.source.lfs.pointers import read_pointer
from submissions.source.tree_entries import TreeEntry
from submissions.verification.archives_inside import ArchiveLimits, OpenedArchives
from submissions.verification.file_kinds import archive_kind, cannot_run
from submissions.verification.findings import Finding
from submissions.verification.structure import (
    capabilities_of,
    check_archives,
    check_files,
    check_tokens,
    limit_per_rule,
)
from vskill.hidden_characters import MAX_SENTENCE, visible

# How much of each file decides what it is.
_BEGINNING_BYTES = 1024


@dataclass(frozen=True)
class PackageFile:
    """One file of a package: its path inside the package, its size in bytes, its SHA-256 in hex."""

    path: str
    size: int
    sha256: str
    executable: bool


@dataclass(frozen=True)
class PackageContents:
    """What the files of a package show.

    ``inert`` are the files, as findings name them, that hold data alone; see ``file_kinds.cannot_run``.
    """

    files: tuple[PackageFile, ...]
    findings: tuple[Finding, ...]
    capabilities: tuple[str, ...]
    inert: frozenset[str]


def inspect_files(
    root: Path,
    entries: Mapping[str, TreeEntry],
    limits: ArchiveLimits | None = None,
    *,
    not_fetched: Mapping[str, str] | None = None,
) -> PackageContents:
    """Return what the files below ``root`` show, and write what their archives hold beside them for the engines.

    ``entries`` has the path of each file. ``limits`` are those of archives, ``not_fetched`` is that of ``check_files``.
    The content of ``a.zip`` is written into the folder ``a.zip!``, which is no part of the package.
    """
    files: list[PackageFile] = []
    beginnings: dict[str, bytes] = {}
    archives = OpenedArchives()
    tokens: list[Finding] = []
    inert: set[str] = set()
    for path in sorted(entries, key=str.encode):
        content, executable = (root / path).read_bytes(), entries[path].executable
        files.append(PackageFile(path, len(content), hashlib.sha256(content).hexdigest(), executable))
        beginnings[path] = content[:_BEGINNING_BYTES]
        tokens += check_tokens(path, content)
        if archive_kind(path, beginnings[path]) is not None and read_pointer(content) is None:
            archives.add(path, content, limits or ArchiveLimits())
        elif cannot_run(path, beginnings[path], executable=executable):
            inert.add(path)
    _write_beside(root, archives, entries)
    for path, content in archives.files.items():
        beginnings[path] = content[:_BEGINNING_BYTES]
        tokens += check_tokens(path, content)
        if cannot_run(path, beginnings[path], executable=False):
            inert.add(path)
    # Its content is read in its place.
    inert.update(archives.opened)
    return PackageContents(
        files=tuple(files),
        findings=(*check_files(beginnings, not_fetched), *check_archives(archives), *limit_per_rule(tokens)),
        capabilities=capabilities_of(beginnings),
        # A longer name would be cut in a finding, and could then be that of another file.
        inert=frozenset(visible(path) for path in inert if len(visible(path)) < MAX_SENTENCE - 10),
    )


def _write_beside(root: Path, archives: OpenedArchives, entries: Iterable[str]) -> None:
    taken = {folder for path in entries for folder in _folders(path)}
    for path, content in list(archives.files.items()):
        if any(folder in taken for folder in _folders(path) if folder.endswith("!")):
            # The skill has a folder of this name, so that the files could not be told apart.
            archive = path.partition("!/")[0]
            archives.unread[archive] = f"the skill has a folder {visible(archive)}! as well"
            archives.opened.pop(archive, None)
            del archives.files[path]
            continue
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(content)


def _folders(path: str) -> list[str]:
    parts = path.casefold().split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def hash_files(files: Iterable[PackageFile]) -> str:
    """Return the content hash of a package: see ``content_hash``."""
    return content_hash((file.path, file.sha256) for file in files)
