"""Reproducible archives: the same files always give the same bytes.

Members are sorted and have fixed times, one of two modes and no links, and SKILL.md lies at the root.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from marketplace.errors import ArchiveError
from vskill.hidden_characters import has_hidden

# The earliest time that a zip can hold.
_ZIP_TIME: Final = (1980, 1, 1, 0, 0, 0)
_REGULAR: Final = 0o100000
_UNIX: Final = 3
_ANYONE_RUNS: Final = 0o111
MANIFEST_NAME: Final = "SKILL.md"


@dataclass(frozen=True, slots=True)
class Member:
    """A file to be archived; ``path`` is relative to the root of the archive, with slashes."""

    path: str
    content: bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        """Return the permission bits: 0755 for executables, 0644 for other files."""
        return 0o755 if self.executable else 0o644


@dataclass(frozen=True, slots=True)
class Archive:
    """The bytes of an archive and their SHA-256 in hex."""

    content: bytes
    sha256: str


def check_path(path: str) -> str:
    """Return ``path``; raise ``ArchiveError`` for one that leaves the folder, is ambiguous or has hidden characters."""
    parts = path.split("/")
    if not path or any(part in ("", ".", "..") for part in parts) or "\\" in path:
        raise ArchiveError(f"{path!r} is not a path inside the skill. Rename the file.")
    if has_hidden(path):
        raise ArchiveError(f"{path!r} has characters that cannot be shown. Rename the file.")
    return path


def _sorted(members: Iterable[Member]) -> list[Member]:
    ordered = sorted(members, key=lambda member: member.path.encode())
    paths = [check_path(member.path) for member in ordered]
    if len(set(paths)) < len(paths):
        raise ArchiveError("Two files have the same path.")
    if MANIFEST_NAME not in paths:
        raise ArchiveError(f"A skill has a file {MANIFEST_NAME} at its root.")
    return ordered


def _archive(content: bytes) -> Archive:
    return Archive(content, hashlib.sha256(content).hexdigest())


def build_zip(members: Iterable[Member]) -> Archive:
    """Return the zip archive of some files; raise ``ArchiveError`` for bad or equal paths and without SKILL.md."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for member in _sorted(members):
            info = zipfile.ZipInfo(member.path, _ZIP_TIME)
            info.create_system = _UNIX
            info.external_attr = (_REGULAR | member.mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, member.content)
    return _archive(out.getvalue())


def build_tar_gz(members: Iterable[Member]) -> Archive:
    """Return the gzipped ustar archive of some files.

    Raises ``ArchiveError`` as ``build_zip`` does, and for a path that ustar cannot hold.
    """
    out = io.BytesIO()
    # ustar, because existing clients read neither pax headers nor GNU long names.
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT, encoding="utf-8") as archive:
        for member in _sorted(members):
            info = tarfile.TarInfo(member.path)
            info.size = len(member.content)
            info.mode = member.mode
            try:
                archive.addfile(info, io.BytesIO(member.content))
            except ValueError as error:
                raise ArchiveError(
                    f"{member.path!r} is too long for an archive that every client reads. Shorten it."
                ) from error
    return _archive(gzip.compress(out.getvalue(), compresslevel=9, mtime=0))


@dataclass(frozen=True, slots=True)
class Packed:
    """Where the deflated bytes of one file are in a zip from ``build_zip``: from ``start`` to before ``end``."""

    start: int
    end: int


def find_member(content: bytes, path: str) -> Packed:
    """Return where a file is in a zip from ``build_zip``; raise ``ArchiveError`` where there is no such file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        try:
            found = archive.getinfo(path)
        except KeyError as error:
            raise ArchiveError(f"The archive has no file {path!r}.") from error
    return _place(content, found)


@dataclass(frozen=True, slots=True)
class PackedMember:
    """A file of a zip and the ``place`` of its deflated bytes."""

    member: Member
    place: Packed


def packed_members(content: bytes) -> Iterator[PackedMember]:
    """Yield each file of a zip from ``build_zip``, in their order."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            executable = bool(info.external_attr >> 16 & _ANYONE_RUNS)
            member = Member(info.filename, archive.read(info), executable)
            yield PackedMember(member, _place(content, info))


def _place(content: bytes, info: zipfile.ZipInfo) -> Packed:
    # The header of a file ends with its name and other fields, whose lengths are in it.
    name, extra = struct.unpack_from("<HH", content, info.header_offset + 26)
    start = info.header_offset + 30 + name + extra
    return Packed(start, start + info.compress_size)


def read_member(content: bytes, path: str) -> bytes:
    """Return the bytes of one file of a zip from ``build_zip``; raise ``ArchiveError`` where there is no such file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        try:
            return archive.read(path)
        except KeyError as error:
            raise ArchiveError(f"The archive has no file {path!r}.") from error
