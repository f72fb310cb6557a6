"""Files are read ahead where they are few and small, and one by one where they are not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from submissions.source.blobs import read_ahead, read_blob
from submissions.source.errors import FetchFailed
from submissions.source.tree_entries import MODE_FILE, TreeEntry


class Source:
    """Files in memory, with a list of what was read together; an entry whose id is "bad" cannot be read."""

    def __init__(self, *sizes: int | None, bad: bool = False) -> None:
        self.entries = tuple(TreeEntry(f"f{n}", MODE_FILE, size, f"oid-{n}") for n, size in enumerate(sizes))
        if bad:
            self.entries += (TreeEntry("bad", MODE_FILE, 1, "bad"),)
        self.reads: list[list[str]] = []

    async def read(self, batch: Sequence[TreeEntry]) -> list[tuple[TreeEntry, bytes]]:
        self.reads.append([entry.path for entry in batch])
        if any(entry.oid == "bad" for entry in batch):
            raise FetchFailed("It cannot be read.")
        return [(entry, entry.oid.encode()) for entry in batch]

    async def with_more(self, more: Sequence[TreeEntry]) -> Source:
        return self


async def test_small_files_are_read_together_and_then_from_memory() -> None:
    source = Source(5, 5, None)
    ahead = await read_ahead(source, source.entries)
    assert [await read_blob(ahead, entry) for entry in source.entries[:2]] == [b"oid-0", b"oid-1"]
    assert source.reads == [["f0", "f1"]]
    assert (await read_blob(ahead, source.entries[2]), source.reads[1]) == (b"oid-2", ["f2"])


@pytest.mark.parametrize("sizes", [pytest.param([1] * 501, id="many"), pytest.param([2**20, 1], id="large")])
async def test_many_or_large_files_are_not_held_in_memory(sizes: list[int]) -> None:
    source = Source(*sizes)
    assert await read_ahead(source, source.entries) is source
    assert source.reads == []


async def test_a_file_that_cannot_be_read_is_an_error_for_who_asks_for_it_alone() -> None:
    source = Source(5, bad=True)
    ahead = await read_ahead(source, source.entries)
    assert await read_blob(ahead, source.entries[0]) == b"oid-0"
    with pytest.raises(FetchFailed):
        await read_blob(ahead, source.entries[1])
