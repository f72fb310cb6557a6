"""Read a folder of this machine as a commit is read: no link is followed, and whatever is no file is named."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from submissions.source.errors import FetchFailed, RepositoryTooLarge
from submissions.source.git_process import FetchLimits
from submissions.source.tree_entries import MODE_EXECUTABLE, MODE_FILE, MODE_LINK, TreeEntry
from vskill.hidden_characters import visible

# What git keeps for itself is in no commit.
_GIT: Final = ".git"


class PlainFolder:
    """The files below a folder, as a source that skills are read from.

    What git ignores is listed as well, because whoever copies the folder gets it. Nothing is read before it is asked
    for, and then only a plain file of the size that was listed.
    """

    def __init__(self, root: Path, entries: tuple[TreeEntry, ...]) -> None:
        """Keep the list; ``open_folder`` makes it."""
        self.root = root
        self.entries = entries

    async def read(self, batch: Sequence[TreeEntry]) -> list[tuple[TreeEntry, bytes]]:
        """Return entries with their bytes, see ``FileSource.read``."""
        return await asyncio.to_thread(lambda: [(entry, self._content(entry)) for entry in batch])

    async def with_more(self, more: Sequence[TreeEntry]) -> PlainFolder:  # noqa: ARG002 - everything is there
        """Return the folder itself."""
        return self

    def _content(self, entry: TreeEntry) -> bytes:
        # The id of an entry is its path here, which stays the same where a link gives it another path.
        path = self.root / entry.oid
        try:
            if entry.is_link:
                return os.fsencode(path.readlink())
            content = _read_plain_file(path)
        except OSError as error:
            raise FetchFailed(f"{visible(entry.oid)} cannot be read: {error.strerror}. Nothing was checked.") from error
        if len(content) != entry.size:
            raise FetchFailed(f"{visible(entry.oid)} changed while it was read. Nothing was checked; try again.")
        return content


def open_folder(root: Path, limits: FetchLimits | None = None) -> PlainFolder:
    """List every file below ``root``; raises RepositoryTooLarge beyond ``limits.listed_files``, FetchFailed otherwise.

    A link to a folder is listed as a link. Folders called ``.git`` are passed over.
    """
    root = root.resolve()
    most = (limits or FetchLimits()).listed_files
    entries: list[TreeEntry] = []
    try:
        for entry in _entries(root):
            if len(entries) >= most:
                raise RepositoryTooLarge(f"The folder has more than {most:,} files. Name the folder of one skill.")
            entries.append(entry)
    except OSError as error:
        name = visible(os.fsdecode(error.filename or ""))
        raise FetchFailed(f"{name} cannot be read: {error.strerror}. Nothing was checked.") from error
    return PlainFolder(root, tuple(sorted(entries, key=lambda entry: entry.path)))


def _entries(root: Path) -> Iterator[TreeEntry]:
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(root / folder) as found:
            for one in found:
                path = f"{folder}{one.name}"
                if one.is_dir(follow_symlinks=False):
                    if one.name != _GIT:
                        waiting.append(f"{path}/")
                elif one.name != _GIT:
                    status = one.stat(follow_symlinks=False)
                    yield TreeEntry(path, _mode(status.st_mode), status.st_size, path)


def _mode(mode: int) -> str:
    """Return the mode of a file as git writes it; that of a device or a pipe is none that git knows."""
    if stat.S_ISLNK(mode):
        return MODE_LINK
    if stat.S_ISREG(mode):
        return MODE_EXECUTABLE if mode & stat.S_IXUSR else MODE_FILE
    return f"{mode:o}"


def _read_plain_file(path: Path) -> bytes:
    # Neither follows a link that has taken the file's place since it was listed, nor waits for a pipe that has.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
