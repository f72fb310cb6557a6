"""What changed between two versions: by manifest, and line by line for text files that are not too large."""

from __future__ import annotations

import difflib
import hashlib
import json
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from marketplace.models import SkillVersion

# On hostile input, difflib takes time quadratic in the number of lines.
MAX_LINES: Final = 2000
MAX_BYTES: Final = 200_000
MAX_FILES_COMPARED: Final = 50
# Of all files of one comparison together.
MAX_LINES_TOGETHER: Final = 10_000
# Of processor time for one comparison. A file that is begun is ended: it takes at most about a second.
MAX_SECONDS: Final = 1.0
# Most work of difflib on one file: pairs of equal lines, times the lines of the shorter side. It took 0.5 s at most.
MAX_WORK: Final = 20_000_000
TOO_LARGE: Final = "(too large to show)"
_KEPT: Final = 128

ReadFile = Callable[[SkillVersion, str], bytes]


@dataclass(frozen=True)
class FileChange:
    """One file that differs.

    ``status`` is ``added``, ``removed`` or ``modified``. ``patch`` is the unified diff without its header, and
    ``additions`` and ``deletions`` count its lines. It is empty for ``binary`` files and where no line differs,
    and ``TOO_LARGE`` beyond the limits, where nobody has counted: both are None.
    """

    path: str
    status: str
    additions: int | None = 0
    deletions: int | None = 0
    patch: str = ""
    binary: bool = False

    @classmethod
    def uncounted(cls, path: str, status: str) -> FileChange:
        """Return the change of a file that is too large to compare."""
        return cls(path, status, None, None, TOO_LARGE)

    @property
    def is_too_large(self) -> bool:
        """Return whether its lines were not counted."""
        return self.additions is None


class Comparisons:
    """The results of the last comparisons by content, for all threads of a process; the oldest is forgotten first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, list[FileChange]] = OrderedDict()

    def get(self, key: str) -> list[FileChange] | None:
        """Return the result that was kept for ``key``, or ``None``."""
        with self._lock:
            return self._kept.get(key)

    def put(self, key: str, changes: list[FileChange]) -> None:
        """Keep a result."""
        with self._lock:
            self._kept[key] = changes
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)


_comparisons: Final = Comparisons(_KEPT)


def compare(before: SkillVersion, after: SkillVersion, read_file: ReadFile, *, keep: bool = True) -> list[FileChange]:
    """Return the files that differ between two versions, sorted by path.

    ``read_file`` returns the bytes of a file of either version. Only the first ``MAX_FILES_COMPARED`` files are
    compared line by line, and the first of those until ``MAX_LINES_TOGETHER`` or ``MAX_SECONDS`` is reached. The result
    is kept, because anybody can ask for it again; without ``keep`` it is neither kept nor taken from what was.
    """
    old, new = _digests(before), _digests(after)
    key = hashlib.sha256(json.dumps([sorted(old.items()), sorted(new.items())]).encode()).hexdigest()
    if keep and (kept := _comparisons.get(key)) is not None:
        return kept
    changed = [path for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path)]
    budget = _Budget()
    changes = []
    for number, path in enumerate(changed):
        status = "modified" if path in old and path in new else "added" if path in new else "removed"
        if number >= MAX_FILES_COMPARED or budget.is_spent():
            changes.append(FileChange.uncounted(path, status))
            continue
        contents = (read_file(before, path) if path in old else b"", read_file(after, path) if path in new else b"")
        changes.append(_change(path, status, *contents, budget))
    if keep:
        _comparisons.put(key, changes)
    return changes


class _Budget:
    """The lines and the processor time that one comparison may still take."""

    def __init__(self) -> None:
        self._lines = MAX_LINES_TOGETHER
        self._ends = time.thread_time() + MAX_SECONDS

    def is_spent(self) -> bool:
        return time.thread_time() > self._ends

    def take(self, before: list[str], after: list[str]) -> bool:
        """Return whether two files may be compared, and count them if so."""
        lines = len(before) + len(after)
        if lines > self._lines or max(len(before), len(after)) > MAX_LINES or _work(before, after) > MAX_WORK:
            return False
        self._lines -= lines
        return True


def _work(before: list[str], after: list[str]) -> int:
    """Return how much difflib has to do at worst: it looks at every pair of equal lines once for each match."""
    ours, theirs = Counter(before), Counter(after)
    # As difflib does, which ignores lines that are frequent in a long file.
    frequent = len(after) // 100 + 1 if len(after) >= 200 else len(after)
    pairs = sum(count * ours[line] for line, count in theirs.items() if count <= frequent)
    return (pairs + len(before)) * min(len(before), len(after))


def _digests(version: SkillVersion) -> dict[str, tuple[str, bool]]:
    files: list[dict[str, Any]] = version.manifest
    return {file["path"]: (file["sha256"], bool(file.get("executable"))) for file in files}


def _change(path: str, status: str, old: bytes, new: bytes, budget: _Budget) -> FileChange:
    if max(len(old), len(new)) > MAX_BYTES:
        return FileChange.uncounted(path, status)
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        return FileChange(path, status, binary=True)
    if not budget.take(before, after):
        return FileChange.uncounted(path, status)
    lines = list(_patch(path, before, after))
    return FileChange(
        path,
        status,
        additions=sum(line.startswith("+") for line in lines[2:]),
        deletions=sum(line.startswith("-") for line in lines[2:]),
        patch="\n".join(lines[2:]),
    )


def _lines(content: bytes) -> list[str] | None:
    if b"\0" in content:
        return None
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError:
        return None
    # Not splitlines(): a change from one of the other characters that it splits at would be no change.
    return lines if lines[-1] else lines[:-1]


def _patch(path: str, before: list[str], after: list[str]) -> Iterator[str]:
    return difflib.unified_diff(before, after, path, path, lineterm="")
