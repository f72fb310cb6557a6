"""The list of files of an upload: checked before anything of it is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from marketplace.artifacts.fingerprints import content_hash
from submissions.source.tree_entries import collisions, odd_name
from submissions.uploads.errors import UploadRefused
from submissions.verification.package_plan import is_skill_file
from submissions.verification.structure import PackageLimits
from vskill.hidden_characters import visible

LIMITS: Final = PackageLimits()
_MIB: Final = 1024 * 1024
_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_KEPT: Final = "Nothing was kept."


@dataclass(frozen=True)
class NamedFile:
    """One file of an upload: where it lies in the skill, and what its bytes have to be."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class FileList:
    """The files of one skill in the order of their paths; ``checked_list`` makes it."""

    files: tuple[NamedFile, ...]

    @cached_property
    def digest(self) -> str:
        """Return the content hash, which names these files wherever they come from."""
        return content_hash((file.path, file.sha256) for file in self.files)

    @property
    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(file.size for file in self.files)


def checked_list(files: Iterable[NamedFile]) -> FileList:
    """Return the files as a list that can become a skill; raise ``UploadRefused`` with what is wrong with it.

    A path is relative, and one that every system can have: no ``..``, backslash, NUL or other name of that kind.
    """
    listed = sorted(files, key=lambda file: file.path)
    if len(listed) > LIMITS.files:
        raise UploadRefused(413, f"That is {len(listed):,} files; a skill has {LIMITS.files} at most. {_KEPT}")
    for file in listed:
        check_file(file.path, file.size, file.sha256)
    if sum(file.size for file in listed) > LIMITS.total_bytes:
        raise UploadRefused(413, f"These files have more than {LIMITS.total_bytes // _MIB} MiB together. {_KEPT}")
    _refuse_collisions([file.path for file in listed])
    if not any(is_skill_file(file.path) and "/" not in file.path for file in listed):
        raise UploadRefused(400, f"SKILL.md required: a skill has one at its root. {_KEPT}")
    return FileList(tuple(listed))


def check_file(path: str, size: int, sha256: str) -> None:
    """Raise ``UploadRefused`` for a path that no skill may have, a size beyond the limit, or what is no digest."""
    reason = odd_name(path)
    if path.startswith("/"):
        reason = "it begins at the root of a disk"
    if reason is not None:
        raise UploadRefused(400, f"{visible(path, 100)!r} is no path in a skill: {reason}. {_KEPT}")
    if not 0 <= size <= LIMITS.total_bytes:
        raise UploadRefused(413, f"{visible(path, 100)} is larger than {LIMITS.total_bytes // _MIB} MiB. {_KEPT}")
    if _SHA256.fullmatch(sha256) is None:
        raise UploadRefused(400, f"The SHA-256 of {visible(path, 100)} is 64 digits in lower-case hex. {_KEPT}")


def _refuse_collisions(paths: Sequence[str]) -> None:
    if pairs := collisions(paths):
        first, second = (visible(path, 100) for path in pairs[0])
        raise UploadRefused(
            400, f"{first!r} and {second!r} are one file on some systems. Rename one of them, and upload again. {_KEPT}"
        )
