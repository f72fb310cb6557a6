"""Find the git directory of a repository on this machine, and refuse one that points out of its folder.

A git directory can do so in many ways: a ``.git`` that is a link or a file, ``commondir``, alternates, links among its
objects and references. Anyone who can create a repository below an allowed folder could otherwise publish every
repository that this server can read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_POINTERS: Final = ("commondir", "objects/info/alternates", "objects/info/http-alternates")
# A fetch never reads hooks, and some systems install them as links.
_NOT_READ: Final = frozenset({"hooks"})
MAX_ENTRIES: Final = 200_000


def own_git_directory(folder: Path, *, max_entries: int = MAX_ENTRIES) -> Path | None:
    """Return the git directory of the repository in ``folder``: the folder itself, or ``.git`` in it.

    Returns None when there is no repository, when any part of it is a link or points to another repository, and when
    it has more than ``max_entries`` files.
    """
    inner = folder / ".git"
    git_dir = inner if os.path.lexists(inner) else folder
    if git_dir.is_symlink() or not (git_dir / "HEAD").is_file() or not (git_dir / "objects").is_dir():
        return None
    if any(os.path.lexists(git_dir / name) for name in _POINTERS):
        return None
    for number, entry in enumerate(_entries(git_dir)):
        if number >= max_entries or entry.is_symlink():
            return None
    return git_dir


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    yield entry
                    if entry.is_dir(follow_symlinks=False) and entry.name not in _NOT_READ:
                        waiting.append(entry.path)
        except FileNotFoundError:
            # Another process, such as a repack, removed it. If anything is missing, git will fail.
            continue
