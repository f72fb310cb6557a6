"""Read the files that somebody uploaded as those of a commit are read: plain files, each with its bytes in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from submissions.source.tree_entries import MODE_FILE, TreeEntry


class UploadedFiles:
    """The files of an upload, as a source that skills are read from; nothing in it is executable or a link."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        """Keep the bytes of each file by its path."""
        self._contents = contents
        self.entries = tuple(TreeEntry(path, MODE_FILE, len(contents[path]), path) for path in sorted(contents))

    async def read(self, batch: Sequence[TreeEntry]) -> list[tuple[TreeEntry, bytes]]:
        """Return entries with their bytes, see ``FileSource.read``."""
        # The id of an entry is its path here.
        return [(entry, self._contents[entry.oid]) for entry in batch]

    async def with_more(self, more: Sequence[TreeEntry]) -> UploadedFiles:  # noqa: ARG002 - everything is there
        """Return the files themselves."""
        return self
