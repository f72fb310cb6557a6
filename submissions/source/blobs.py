"""Read the files of a snapshot straight from git's objects.

No working tree is checked out. Attributes, filters, line-ending conversion and links act there, and a hostile
repository could use any of them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path

from submissions.source.errors import FetchFailed, RepositoryTooLarge, UnsafeTree
from submissions.source.git import Snapshot
from submissions.source.tree_entries import TreeEntry, collisions, odd_name

# Bounds of one `cat-file` call, whose whole output is held in memory.
_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_FILES = 500
_HEADER = re.compile(rb"[0-9a-f]{40,64} blob (\d+)")
_DEFAULT_BYTES = 10 * 1024 * 1024
_DEFAULT_FILES = 500


async def read_blobs(snapshot: Snapshot, entries: Iterable[TreeEntry]) -> AsyncIterator[tuple[TreeEntry, bytes]]:
    """Yield every entry with its bytes, in order, holding a few megabytes in memory at a time.

    A single file is read whole, so check ``entry.size`` first. Raises FetchFailed when git cannot read an entry.
    """
    async for batch in read_blobs_in_batches(snapshot, entries):
        for pair in batch:
            yield pair


async def read_blobs_in_batches(
    snapshot: Snapshot, entries: Iterable[TreeEntry]
) -> AsyncIterator[list[tuple[TreeEntry, bytes]]]:
    """Yield what ``read_blobs`` yields, a few hundred entries at a time, for a caller that hands them to a thread."""
    # In a thread, because there may be thousands of entries.
    for batch, size in await asyncio.to_thread(lambda: list(_batches(entries))):
        result = await snapshot.sandbox.run(
            "cat-file",
            "--batch",
            stdin=_as_lines(batch),
            limits=snapshot.limits.for_child(size + 128 * len(batch)),
        )
        yield await asyncio.to_thread(_split, batch, result.stdout)


def _as_lines(batch: Iterable[TreeEntry]) -> bytes:
    return "".join([f"{entry.oid}\n" for entry in batch]).encode("ascii")


def _split(batch: Iterable[TreeEntry], output: bytes) -> list[tuple[TreeEntry, bytes]]:
    """Return each entry of a batch with its bytes from the ``output`` of cat-file."""
    pairs: list[tuple[TreeEntry, bytes]] = []
    position = 0
    for entry in batch:
        end_of_line = output.find(b"\n", position)
        header = _HEADER.fullmatch(output[position : max(end_of_line, position)])
        if header is None or entry.size is None or int(header[1]) != entry.size:
            raise FetchFailed("A file of the repository could not be read from what was fetched. Try again.")
        position = end_of_line + 1
        content = output[position : position + entry.size]
        if len(content) != entry.size:
            raise FetchFailed("A file of the repository arrived cut short. Try again.")
        position += entry.size + 1
        pairs.append((entry, content))
    return pairs


async def read_blob(snapshot: Snapshot, entry: TreeEntry) -> bytes:
    """Return the bytes of one entry; see ``read_blobs``."""
    return b"".join([content async for _, content in read_blobs(snapshot, [entry])])


def _batches(entries: Iterable[TreeEntry]) -> Iterator[tuple[list[TreeEntry], int]]:
    """Yield the entries in batches for one process each, and the bytes of each batch."""
    batch: list[TreeEntry] = []
    size = 0
    for entry in entries:
        if batch and (len(batch) >= _BATCH_FILES or size + (entry.size or 0) > _BATCH_BYTES):
            yield batch, size
            batch, size = [], 0
        batch.append(entry)
        size += entry.size or 0
    if batch:
        yield batch, size


async def write_files(
    snapshot: Snapshot,
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
    async for entry, content in read_blobs(snapshot, files.values()):
        target = destination / next(names)
        target.parent.mkdir(parents=True, exist_ok=True)
        # "x" fails on anything that exists, so a link is never written through.
        with target.open("xb") as file:
            file.write(content)
        target.chmod(0o755 if entry.executable else 0o644)
