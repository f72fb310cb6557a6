"""What changed between two versions: by manifest, and line by line for text files that are not too large."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from marketplace.models import SkillVersion

# On hostile input, difflib takes time quadratic in the number of lines.
MAX_LINES: Final = 2000
MAX_BYTES: Final = 200_000
MAX_FILES_COMPARED: Final = 50

ReadFile = Callable[[SkillVersion, str], bytes]


@dataclass(frozen=True)
class FileChange:
    """One file that differs.

    ``status`` is ``added``, ``removed`` or ``modified``. ``patch`` is the unified diff without its header, and
    ``additions`` and ``deletions`` count its lines; it is empty for binary and large files.
    """

    path: str
    status: str
    additions: int = 0
    deletions: int = 0
    patch: str = ""


def compare(before: SkillVersion, after: SkillVersion, read_file: ReadFile) -> list[FileChange]:
    """Return the files that differ between two versions, sorted by path.

    ``read_file`` returns the bytes of a file of either version. Only the first ``MAX_FILES_COMPARED`` files are
    compared line by line.
    """
    old, new = _digests(before), _digests(after)
    changed = [path for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path)]
    return [
        _change(
            path,
            "modified" if path in old and path in new else "added" if path in new else "removed",
            (read_file(before, path) if path in old else b"") if number < MAX_FILES_COMPARED else None,
            (read_file(after, path) if path in new else b"") if number < MAX_FILES_COMPARED else None,
        )
        for number, path in enumerate(changed)
    ]


def _digests(version: SkillVersion) -> dict[str, tuple[str, bool]]:
    files: list[dict[str, Any]] = version.manifest
    return {file["path"]: (file["sha256"], bool(file.get("executable"))) for file in files}


def _change(path: str, status: str, old: bytes | None, new: bytes | None) -> FileChange:
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        return FileChange(path, status)
    lines = list(_patch(path, before, after))
    return FileChange(
        path,
        status,
        additions=sum(line.startswith("+") for line in lines[2:]),
        deletions=sum(line.startswith("-") for line in lines[2:]),
        patch="\n".join(lines[2:]),
    )


def _lines(content: bytes | None) -> list[str] | None:
    if content is None or len(content) > MAX_BYTES or b"\0" in content:
        return None
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError:
        return None
    return lines if len(lines) <= MAX_LINES else None


def _patch(path: str, before: list[str], after: list[str]) -> Iterator[str]:
    return difflib.unified_diff(before, after, path, path, lineterm="")
