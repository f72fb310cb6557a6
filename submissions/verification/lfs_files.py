"""Put what is kept in Git LFS in the place of its pointers, as a client with git-lfs would."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from submissions.source.blobs import read_blobs
from submissions.source.errors import FetchFailed
from submissions.source.file_source import FileSource
from submissions.source.lfs.objects import LfsSource
from submissions.source.lfs.pointers import POINTER_SIZES, Pointer, read_pointer
from submissions.source.tree_entries import TreeEntry
from submissions.verification.findings import Finding
from submissions.verification.package_contents import PackageFile
from submissions.verification.package_plan import SKILL_FILE
from submissions.verification.structure import PackageLimits, fetched_note, limit_per_rule

_MIB = 1024 * 1024


@dataclass(frozen=True)
class LfsFiles:
    """The files of a package that were fetched from Git LFS, and of the others why not, both by their paths."""

    fetched: Mapping[str, Pointer] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def findings(self) -> list[Finding]:
        """Return a note about each file that was fetched."""
        return limit_per_rule(fetched_note(path, one.size) for path, one in sorted(self.fetched.items()))

    def with_their_sizes(self, entries: Iterable[TreeEntry], files: Mapping[str, TreeEntry]) -> list[TreeEntry]:
        """Return the ``entries`` of a skill with the sizes of what was fetched for ``files``, its package."""
        sizes = {files[path].oid: pointer.size for path, pointer in self.fetched.items()}
        return [replace(one, size=sizes.get(one.oid, one.size)) for one in entries]

    def put_into(self, destination: Path, folder: Path) -> None:
        """Write over each pointer below ``destination`` what is in ``folder`` under its id; the mode stays."""
        for path, pointer in self.fetched.items():
            shutil.copyfile(folder / pointer.oid, destination / path, follow_symlinks=False)

    def check(self, files: Iterable[PackageFile]) -> None:
        """Raise FetchFailed unless each file that was fetched is what its pointer says."""
        for file in files:
            pointer = self.fetched.get(file.path)
            if pointer is not None and (file.sha256, file.size) != (pointer.oid, pointer.size):
                raise FetchFailed("A file that is kept in Git LFS was damaged on its way. Try again.")


async def fetch_lfs_files(
    source: FileSource, files: Mapping[str, TreeEntry], lfs: LfsSource | None, limits: PackageLimits
) -> LfsFiles:
    """Fetch from ``lfs`` what the pointers among the ``files`` of a package in ``source`` stand for, as far as it fits.

    In the order of their names, each is fetched that leaves the package within ``limits``. Without ``lfs`` none is.
    Raises the errors of ``LfsSource.bring``.
    """
    pointers = await _pointers_among(source, files) if lfs is not None else {}
    if lfs is None or not pointers:
        return LfsFiles()
    chosen, reasons = _that_fit(files, pointers, limits)
    if chosen:
        missing = await lfs.bring(list(chosen.values()))
        reasons |= {path: missing[one.oid] for path, one in chosen.items() if one.oid in missing}
        chosen = {path: one for path, one in chosen.items() if one.oid not in missing}
    return LfsFiles(chosen, reasons)


async def _pointers_among(source: FileSource, files: Mapping[str, TreeEntry]) -> dict[str, Pointer]:
    # SKILL.md is read before anything is fetched for it; a pointer in its place has no frontmatter.
    small = {path: one for path, one in files.items() if one.size in POINTER_SIZES and path != SKILL_FILE}
    found: dict[str, Pointer] = {}
    names = iter(small)
    async for _entry, content in read_blobs(source, small.values()):
        path = next(names)
        if (pointer := read_pointer(content)) is not None:
            found[path] = pointer
    return found


def _that_fit(
    files: Mapping[str, TreeEntry], pointers: Mapping[str, Pointer], limits: PackageLimits
) -> tuple[dict[str, Pointer], dict[str, str]]:
    total = sum(entry.size or 0 for entry in files.values())
    # Files of the same content together, because links make several of one.
    paths_of: dict[Pointer, list[str]] = {}
    for path in sorted(pointers, key=str.encode):
        paths_of.setdefault(pointers[path], []).append(path)
    chosen: dict[str, Pointer] = {}
    reasons: dict[str, str] = {}
    for pointer, paths in paths_of.items():
        with_it = total + sum(pointer.size - (files[path].size or 0) for path in paths)
        if pointer.extended:
            reasons |= dict.fromkeys(paths, "only a program of its author can make the file of it")
        elif with_it > limits.total_bytes:
            reasons |= dict.fromkeys(paths, f"the skill would be larger than {limits.total_bytes / _MIB:,.0f} MiB")
        else:
            chosen |= dict.fromkeys(paths, pointer)
            total = with_it
    return chosen, reasons
