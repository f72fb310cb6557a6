"""Tell from ``.gitattributes`` which files are kept in Git LFS, where the files themselves are not at hand."""

from __future__ import annotations

import fnmatch
import re
from typing import Final

LFS_FILE: Final = ".gitattributes"
_LINE: Final = re.compile(r"(?P<pattern>\"[^\"]*\"|\S+)\s(?:.*\s)?filter=lfs(?:\s|$)")
_MOST_PATTERNS: Final = 30
_MAX_PATTERN: Final = 200


class LfsAttributes:
    """The patterns of all ``.gitattributes`` of a commit.

    The stars of a pattern match slashes as well, and a line that takes the filter away again counts for nothing: the
    answer is for a note, and the file itself is looked at when it is fetched.
    """

    def __init__(self) -> None:
        """Begin with no pattern."""
        self._patterns: list[tuple[str, bool, re.Pattern[str]]] = []

    def add(self, folder: str, content: bytes) -> None:
        """Take over the patterns of the file in ``folder`` ('' for the root)."""
        for line in content.decode("utf-8", "replace").splitlines():
            match = _LINE.match(line)
            if match is None or len(self._patterns) >= _MOST_PATTERNS:
                continue
            pattern = match["pattern"].strip('"')
            if pattern.startswith("#") or len(pattern) > _MAX_PATTERN:
                continue
            # A pattern without a slash is one for names in any folder. fnmatch takes no exponential time.
            regular = re.compile(fnmatch.translate(pattern.lstrip("/")))
            self._patterns.append((f"{folder}/" if folder else "", "/" not in pattern, regular))

    def names(self, path: str) -> bool:
        """Return whether a path is kept in Git LFS."""
        return any(
            path.startswith(start) and regular.match(path.rpartition("/")[2] if by_name else path[len(start) :])
            for start, by_name, regular in self._patterns
        )
