"""Read blobs with one ``git cat-file --batch``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence

from submissions.source.errors import FetchFailed
from submissions.source.git_process import FetchLimits, GitSandbox
from submissions.source.tree_entries import TreeEntry

_HEADER = re.compile(rb"[0-9a-f]{40,64} blob (\d+)")
# What git prints around the bytes of one blob.
_AROUND = 128


async def cat_file(
    sandbox: GitSandbox, limits: FetchLimits, batch: Sequence[TreeEntry]
) -> list[tuple[TreeEntry, bytes]]:
    """Return each entry of a batch with its bytes, in order; raises FetchFailed when git cannot read one."""
    size = sum(entry.size or 0 for entry in batch)
    result = await sandbox.read(
        "cat-file",
        "--batch",
        stdin="".join([f"{entry.oid}\n" for entry in batch]).encode("ascii"),
        limits=limits.for_child(size + _AROUND * len(batch)),
    )
    return await asyncio.to_thread(_split, batch, result.stdout)


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
