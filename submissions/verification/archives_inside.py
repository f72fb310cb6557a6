"""Open the archives that a skill holds, within limits, so that what is in them is checked like its other files.

Nothing is written here, and no name from an archive is used before it has been checked.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from submissions.source.tree_entries import collisions, odd_name
from submissions.verification.file_kinds import archive_kind

_MIB: Final = 1024 * 1024
# What an unpacker of xz may allocate. Its default preset needs 9 MiB.
_XZ_MEMORY: Final = 64 * _MIB
_ZIP_KINDS: Final = frozenset(
    {"zip", "jar", "war", "ear", "apk", "aar", "whl", "egg", "nupkg", "vsix", "xpi", "skill", "mcpb", "dxt"}
)
# Not lzma, whose header says how much memory its unpacker takes.
_ZIP_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2})
_STREAMS: Final = {
    **dict.fromkeys(("gzip", "gz", "tgz"), "gzip"),
    **dict.fromkeys(("bzip2", "bz2", "tbz", "tbz2"), "bzip2"),
    **dict.fromkeys(("xz", "txz", "lzma"), "xz"),
}
_BLOCK: Final = 512


class _Unreadable(Exception):
    """Raised for an archive that is not opened completely; the text says why, for people."""


@dataclass(frozen=True)
class ArchiveLimits:
    """The limits for all archives of one skill together.

    ``files`` and ``total_bytes`` bound what is in them, ``depth`` how often an archive may hold another one, and
    ``ratio`` how many times larger than packed a file of more than a megabyte may be.
    """

    files: int = 1000
    total_bytes: int = 20 * _MIB
    depth: int = 3
    ratio: int = 200


@dataclass
class OpenedArchives:
    """What the archives of a skill hold.

    ``files`` maps ``archive.zip!/inner/file`` to the content of that file. ``opened`` maps each archive to the number
    of files in it, and ``unread`` each one that was not opened completely to the reason.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    opened: dict[str, int] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    _bytes: int = 0

    def add(self, path: str, content: bytes, limits: ArchiveLimits, depth: int = 1) -> None:
        """Open the archive ``content`` at ``path``, and those in it; anything that is no archive is passed over."""
        kind = archive_kind(path, content[: _BLOCK * 2])
        if kind is None:
            return
        members: list[tuple[str, bytes]] = []
        try:
            if depth > limits.depth:
                raise _Unreadable(f"it lies more than {limits.depth} archives deep")
            for name, data in _members(path, kind, content, limits, limits.total_bytes - self._bytes):
                if len(self.files) + len(members) >= limits.files:
                    raise _Unreadable(f"the archives of the skill hold more than {limits.files:,} files")
                self._bytes += len(data)
                members.append((_checked(name), data))
            if collisions(name for name, _ in members):
                raise _Unreadable("two files in it have the same name for some systems")
            self.opened[path] = len(members)
        except _Unreadable as reason:
            self.unread[path] = str(reason)
        # What was read before a limit was reached is checked as well.
        for name, data in members:
            self.files.setdefault(f"{path}!/{name}", data)
        for name, data in members:
            self.add(f"{path}!/{name}", data, limits, depth + 1)


def _checked(name: str) -> str:
    path = name.removeprefix("./").rstrip("/")
    reason = odd_name(path)
    if reason is not None:
        raise _Unreadable(f"a file in it has a name that cannot be used: {reason}")
    return path


def _members(path: str, kind: str, content: bytes, limits: ArchiveLimits, room: int) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive by name; raises _Unreadable, also after some of them."""
    try:
        if kind in _ZIP_KINDS:
            yield from _zip_members(content, limits, room)
        elif kind in _STREAMS:
            yield from _stream_members(path, _STREAMS[kind], content, limits, room)
        elif kind == "tar":
            yield from _tar_members(content, room)
        else:
            raise _Unreadable(f"archives of the kind {kind} are not opened here")
    except (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, OSError, EOFError) as error:
        raise _Unreadable(f"it is damaged or of another kind than its name says ({error})") from error
    except (NotImplementedError, RuntimeError, ValueError, MemoryError) as error:
        raise _Unreadable(f"it is packed in a way that is not read here ({error})") from error


def _zip_members(content: bytes, limits: ArchiveLimits, room: int) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        infos = archive.infolist()
        if len(infos) > limits.files * 2:
            raise _Unreadable(f"it lists {len(infos):,} files")
        for info in infos:
            if info.is_dir():
                continue
            if info.flag_bits & 1:
                raise _Unreadable("it is encrypted")
            if info.compress_type not in _ZIP_METHODS:
                raise _Unreadable(f"it is packed with method {info.compress_type}, which is not read here")
            if (info.external_attr >> 16) & 0o170000 not in (0, 0o100000):
                raise _Unreadable("it holds links or devices")
            with archive.open(info) as stream:
                data = _bounded(stream.read(min(room, info.file_size) + 1), room)
            _check_ratio(len(data), info.compress_size, limits)
            room -= len(data)
            yield info.filename, data


def _tar_members(content: bytes, room: int) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for member in archive:
            if member.isdir():
                continue
            if not member.isreg() or member.issparse():
                raise _Unreadable("it holds links or devices")
            stream = archive.extractfile(member)
            data = _bounded(stream.read(min(room, member.size) + 1) if stream is not None else b"", room)
            room -= len(data)
            yield member.name, data


def _stream_members(
    path: str, kind: str, content: bytes, limits: ArchiveLimits, room: int
) -> Iterator[tuple[str, bytes]]:
    """Yield what one packed stream holds: the files of a tar archive, or one file under the name without its ending."""
    data = _unpacked(kind, content, room)
    _check_ratio(len(data), len(content), limits)
    if archive_kind("", data[: _BLOCK * 2]) == "tar":
        yield from _tar_members(data, room)
        return
    name = PurePosixPath(path.rpartition("!/")[2]).name
    yield name.rpartition(".")[0] or "content", data


def _unpacked(kind: str, content: bytes, room: int) -> bytes:
    source = io.BytesIO(content)
    if kind == "xz":
        return _unpacked_xz(content, room)
    with gzip.GzipFile(fileobj=source) if kind == "gzip" else bz2.BZ2File(source) as stream:
        return _bounded(stream.read(room + 1), room)


def _unpacked_xz(content: bytes, room: int) -> bytes:
    # The class for files has no limit of memory.
    unpacker = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
    data = _bounded(unpacker.decompress(content, room + 1), room)
    if not unpacker.eof:
        raise _Unreadable("it ends too early")
    if unpacker.unused_data.strip(b"\0"):
        raise _Unreadable("something follows its end")
    return data


def _bounded(data: bytes, room: int) -> bytes:
    if len(data) > room:
        raise _Unreadable("the archives of the skill hold more bytes than are unpacked here")
    return data


def _check_ratio(unpacked: int, packed: int, limits: ArchiveLimits) -> None:
    if unpacked > _MIB and unpacked > packed * limits.ratio:
        raise _Unreadable(f"it unpacks to more than {limits.ratio} times its size")
