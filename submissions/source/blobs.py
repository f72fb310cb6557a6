"""Read the files of a source: of a snapshot straight from git's objects.

No working tree is checked out. Attributes, filters, line-ending conversion and links act there, and a hostile
repository could use any of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from submissions.source.errors import FetchFailed, RepositoryTooLarge, UnsafeTree
from submissions.source.file_source import FileSource
from submissions.source.tree_entries import TreeEntry, collisions, odd_name

# Bounds of one `cat-file` call, whose whole output is held in memory.
_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_FILES = 500
# Held for every skill that is in work.
_AHEAD_BYTES = 1024 * 1024
_DEFAULT_BYTES = 10 * 1024 * 1024
_DEFAULT_FILES = 500


async def read_blobs(source: FileSource, entries: Iterable[TreeEntry]) -> AsyncIterator[tuple[TreeEntry, bytes]]:
    """Yield every entry with its bytes, in order, holding a few megabytes in memory at a time.

    A single file is read whole, so check ``entry.size`` first. Raises FetchFailed when an entry cannot be read.
    """
    async for batch in read_blobs_in_batches(source, entries):
        for pair in batch:
            yield pair


async def read_blobs_in_batches(
    source: FileSource, entries: Iterable[TreeEntry]
) -> AsyncIterator[list[tuple[TreeEntry, bytes]]]:
    """Yield what ``read_blobs`` yields, a few hundred entries at a time, for a caller that hands them to a thread."""
    # In a thread, because there may be thousands of entries.
    for batch in await asyncio.to_thread(lambda: list(_batches(entries))):
        yield await source.read(batch)


async def read_ahead(source: FileSource, entries: Sequence[TreeEntry]) -> FileSource:
    """Return ``source`` with the bytes of ``entries`` held in memory where they are few and small, else as it is.

    What is asked for one by one then costs one read.
    """
    there = {entry.oid: entry for entry in entries if entry.size is not None}
    if len(there) > _BATCH_FILES or sum(entry.size or 0 for entry in there.values()) > _AHEAD_BYTES:
        return source
    try:
        return _ReadAhead(source, {entry.oid: content for entry, content in await source.read(list(there.values()))})
    except FetchFailed:
        # One of them cannot be read; who asks for that one is told so.
        return source


class _ReadAhead:
    """A source, some of whose files are held in memory by the ids of their content."""

    def __init__(self, source: FileSource, held: Mapping[str, bytes]) -> None:
        self._source = source
        self._held = held

    @property
    def entries(self) -> tuple[TreeEntry, ...]:
        return self._source.entries

    async def read(self, batch: Sequence[TreeEntry]) -> list[tuple[TreeEntry, bytes]]:
        if all(entry.oid in self._held for entry in batch):
            return [(entry, self._held[entry.oid]) for entry in batch]
        return await self._source.read(batch)

    async def with_more(self, more: Sequence[TreeEntry]) -> FileSource:
        return await self._source.with_more(more)


async def read_blob(source: FileSource, entry: TreeEntry) -> bytes:
    """Return the bytes of one entry; see ``read_blobs``."""
    return b"".join([content async for _, content in read_blobs(source, [entry])])


def _batches(entries: Iterable[TreeEntry]) -> Iterator[list[TreeEntry]]:
    """Yield the entries in batches for one process each."""
    batch: list[TreeEntry] = []
    size = 0
    for entry in entries:
        if batch and (len(batch) >= _BATCH_FILES or size + (entry.size or 0) > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.size or 0
    if batch:
        yield batch


async def write_files(
    source: FileSource,
    files: Mapping[str, TreeEntry],
    destination: Path,
    *,
    max_files: int = _DEFAULT_FILES,
    max_bytes: int = _DEFAULT_BYTES,
) -> None:
    """Write files into the empty folder ``destination``: each path of ``files`` gets the bytes of its entry.

    Files get the mode 0644 or 0755 and their bytes as committed. Before anything is read, raises UnsafeTree for links,
    submodules and names that cannot be files everywhere, and RepositoryTooLarge beyond ``max_files`` files or
    ``max_bytes`` bytes in total.
    """
    for path, entry in files.items():
        problem = odd_name(path) if entry.is_regular else "it is a link or a submodule, not a file"
        if problem is not None:
            raise UnsafeTree(f"{path!a} cannot be written: {problem}.")
    if collisions(files):
        raise UnsafeTree("Two files have names that differ by case only, so neither was written.")
    if len(files) > max_files or sum(entry.size or 0 for entry in files.values()) > max_bytes:
        raise RepositoryTooLarge(
            f"The folder has more than {max_files:,} files or {max_bytes // 1024:,} KiB, so it was not written."
        )
    # The same entry can be written to several paths: a link is replaced by its file.
    names = iter(files)
    async for entry, content in read_blobs(source, files.values()):
        target = destination / next(names)
        target.parent.mkdir(parents=True, exist_ok=True)
        # "x" fails on anything that exists, so a link is never written through.
        with target.open("xb") as file:
            file.write(content)
        target.chmod(0o755 if entry.executable else 0o644)
