"""What is read a skill from: a fetched commit, or a folder of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from submissions.source.tree_entries import TreeEntry


class FileSource(Protocol):
    """A list of files, and the bytes of those that are asked for."""

    @property
    def entries(self) -> tuple[TreeEntry, ...]:
        """Return every file, with paths from the root."""

    async def read(self, batch: Sequence[TreeEntry]) -> list[tuple[TreeEntry, bytes]]:
        """Return entries with their bytes, in the order that was asked for; those of a link are where it leads to.

        A batch is held in memory, so the caller bounds it. Raises FetchFailed for what cannot be read.
        """

    async def with_more(self, more: Sequence[TreeEntry]) -> FileSource:
        """Return the source with the content of ``more`` of its entries, which may not have been asked for yet.

        Raises a SourceError where they cannot be had.
        """
