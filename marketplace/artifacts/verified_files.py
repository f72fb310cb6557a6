"""Read the files of a publication from disk, and refuse files that are not the ones that were verified."""

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
from vskill.processes.machine_faults import machine_fault


class ExpectedFile(Protocol):
    """What a file on disk is compared with."""

    @property
    def path(self) -> str:
        """Return the path relative to the root of the skill, with slashes."""
        ...

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        ...

    @property
    def sha256(self) -> str:
        """Return the SHA-256 in hex."""
        ...

    @property
    def executable(self) -> bool:
        """Return whether the file is executable; it is taken over and not compared."""
        ...


@contextmanager
def _opened(path: str | Path, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read_below(folder: int, parts: list[str], limit: int) -> bytes:
    # One component at a time, because O_NOFOLLOW applies only to the last one.
    if len(parts) > 1:
        with _opened(parts[0], os.O_RDONLY | os.O_DIRECTORY, folder) as inner:
            return _read_below(inner, parts[1:], limit)
    # O_NONBLOCK, because opening a named pipe would wait for its writer.
    with _opened(parts[0], os.O_RDONLY | os.O_NONBLOCK, folder) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        with os.fdopen(os.dup(descriptor), "rb") as stream:
            return stream.read(limit)


def read_members(root: Path, files: Iterable[ExpectedFile]) -> list[Member]:
    """Return the files of a manifest, read below ``root`` without following links.

    Raises ``PublicationMismatch`` for a file that is missing, not regular, or of another size or SHA-256.
    """
    members = []
    with _opened(root.resolve(), os.O_RDONLY | os.O_DIRECTORY) as folder:
        for file in files:
            try:
                content = _read_below(folder, check_path(file.path).split("/"), file.size + 1)
            except (ArchiveError, OSError) as error:
                if machine_fault(error) is not None:
                    # The file was not looked at, so nothing is wrong with it.
                    raise
                raise _mismatch(file.path, str(error)) from error
            if len(content) != file.size or hashlib.sha256(content).hexdigest() != file.sha256:
                raise _mismatch(file.path, "its content has changed")
            members.append(Member(file.path, content, file.executable))
    return members


def _mismatch(path: str, reason: str) -> PublicationMismatch:
    return PublicationMismatch(
        f"{path!r} is not the file that was verified ({reason}). Nothing was published: verify it again."
    )
