"""Read a stored archive in chunks, so that a slow client costs the memory of one chunk and not of the archive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from django.db import connections

from marketplace.models import ArchiveBlob
from vskill.environments import WorkerEnv
from vskill.visitors.reads import part_reads

CHUNK_BYTES: Final = 64 * 1024
_TABLE: Final = ArchiveBlob._meta.db_table


def read_chunk(env: WorkerEnv, sha256: str, offset: int) -> bytes:
    """Return up to ``CHUNK_BYTES`` bytes of the archive ``sha256`` (hex) from ``offset`` on.

    Raises ``ArchiveBlob.DoesNotExist`` if there is no such archive.
    """
    connection = connections[env.database]
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            # substr() would read the whole value for each chunk.
            cursor.execute(f"SELECT rowid FROM {_TABLE} WHERE sha256 = %(sha256)s", {"sha256": sha256})  # noqa: S608 - our own table's name
            (row,) = _found(cursor.fetchone(), sha256)
            with connection.connection.blobopen(_TABLE, "content", row, readonly=True) as blob:
                blob.seek(offset)
                return bytes(blob.read(CHUNK_BYTES))
        cursor.execute(
            f"SELECT substring(content FROM %(start)s FOR %(length)s) FROM {_TABLE} WHERE sha256 = %(sha256)s",  # noqa: S608 - our own table's name
            {"sha256": sha256, "start": offset + 1, "length": CHUNK_BYTES},
        )
        (part,) = _found(cursor.fetchone(), sha256)
        return bytes(part)


def _found(row: Any, sha256: str) -> Any:
    if row is None:
        raise ArchiveBlob.DoesNotExist(f"There is no archive {sha256}.")
    return row


async def chunks_async(env: WorkerEnv, sha256: str, size: int) -> AsyncIterator[bytes]:
    """Yield the ``size`` bytes of an archive in chunks, each read on a database thread when the last one was sent."""
    for offset in range(0, size, CHUNK_BYTES):
        yield await part_reads.run(read_chunk, env, sha256, offset)


def chunks(env: WorkerEnv, sha256: str, size: int) -> Iterator[bytes]:
    """Yield the ``size`` bytes of an archive in chunks, for a server that is not asynchronous."""
    for offset in range(0, size, CHUNK_BYTES):
        yield part_reads.run_sync(read_chunk, env, sha256, offset)
