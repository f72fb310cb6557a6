"""Read the files of a publication from disk, and refuse any that is not what was verified."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from marketplace.artifacts.archives import Member, check_path
from marketplace.errors import ArchiveError, PublicationMismatch


class ManifestLine(Protocol):
    """What is expected of one file."""

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def sha256(self) -> str: ...
    @property
    def executable(self) -> bool: ...


@contextmanager
def _opened(path: str | Path, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read_below(folder: int, parts: list[str], limit: int) -> bytes:
    # One component at a time, because O_NOFOLLOW looks at the last one only.
    if len(parts) > 1:
        with _opened(parts[0], os.O_RDONLY | os.O_DIRECTORY, folder) as inner:
            return _read_below(inner, parts[1:], limit)
    # O_NONBLOCK, because opening a pipe would wait for its writer.
    with _opened(parts[0], os.O_RDONLY | os.O_NONBLOCK, folder) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            return stream.read(limit)


def read_members(root: Path, files: Iterable[ManifestLine]) -> list[Member]:
    """Return the files below ``root`` that a manifest names, following no link.

    Raises ``PublicationMismatch`` for one that is absent, is no regular file, or has another size or SHA-256.
    """
    members = []
    with _opened(root.resolve(), os.O_RDONLY | os.O_DIRECTORY) as folder:
        for file in files:
            try:
                content = _read_below(folder, check_path(file.path).split("/"), file.size + 1)
            except (ArchiveError, OSError) as error:
                raise _mismatch(file.path, str(error)) from error
            if len(content) != file.size or hashlib.sha256(content).hexdigest() != file.sha256:
                raise _mismatch(file.path, "its content has changed")
            members.append(Member(file.path, content, file.executable))
    return members


def _mismatch(path: str, reason: str) -> PublicationMismatch:
    return PublicationMismatch(
        f"{path!r} is not the file that was verified ({reason}). Nothing was published: verify it again."
    )
