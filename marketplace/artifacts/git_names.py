"""Names of files by which git itself is told what to do, so that files beside them would not stay as they are."""

from __future__ import annotations

from typing import Final

_MEANT_FOR_GIT: Final = frozenset({".git", "git~1", ".gitattributes", ".gitmodules"})


def is_meant_for_git(path: str) -> bool:
    """Return whether a part of ``path`` is a name that git refuses, or whose content it takes for orders.

    Names count as file systems read them that ignore case, what follows a colon, and dots and spaces at the end.
    """
    return any(part.lower().partition(":")[0].rstrip(". ") in _MEANT_FOR_GIT for part in path.split("/"))
