"""Read stored archives and files in chunks, so that a slow client costs the memory of a chunk and not of the whole."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

from django.db import connections
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse

from marketplace.artifacts.archives import Packed, find_member, read_member
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


def _unpacked(inflate: Any, part: bytes) -> Iterator[bytes]:
    """Yield what ``part`` unpacks to, a chunk at a time: a little can unpack to a lot."""
    while part:
        yield inflate.decompress(part, CHUNK_BYTES)
        part = inflate.unconsumed_tail


async def _member_async(env: WorkerEnv, sha256: str, packed: Packed) -> AsyncIterator[bytes]:
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    for offset in range(packed.start, packed.end, CHUNK_BYTES):
        part = await part_reads.run(read_chunk, env, sha256, offset)
        for chunk in _unpacked(inflate, part[: packed.end - offset]):
            yield chunk
    yield inflate.flush()


def _member(env: WorkerEnv, sha256: str, packed: Packed) -> Iterator[bytes]:
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    for offset in range(packed.start, packed.end, CHUNK_BYTES):
        part = part_reads.run_sync(read_chunk, env, sha256, offset)
        yield from _unpacked(inflate, part[: packed.end - offset])
    yield inflate.flush()


def read_file(
    env: WorkerEnv, sha256: str, path: str, type_of: Callable[[bytes], str], *, asynchronous: bool
) -> HttpResponseBase:
    """Return a response with the file at ``path`` of the zip ``sha256`` (hex), read while it is sent if it is large.

    ``type_of`` is given the bytes of the file and returns its media type; what it raises is raised. ``asynchronous``
    says whether the server is. Raises ``ArchiveError`` where the archive has no such file.
    """
    archive = bytes(ArchiveBlob.objects.using(env.database).values_list("content", flat=True).get(sha256=sha256))
    content = read_member(archive, path)
    kind = type_of(content)
    if len(content) <= CHUNK_BYTES:
        return HttpResponse(content, content_type=kind)
    read = _member_async if asynchronous else _member
    return StreamingHttpResponse(
        read(env, sha256, find_member(archive, path)), content_type=kind, headers={"Content-Length": str(len(content))}
    )


async def chunks_async(env: WorkerEnv, sha256: str, size: int) -> AsyncIterator[bytes]:
    """Yield the ``size`` bytes of an archive in chunks, each read on a database thread when the last one was sent."""
    for offset in range(0, size, CHUNK_BYTES):
        yield await part_reads.run(read_chunk, env, sha256, offset)


def chunks(env: WorkerEnv, sha256: str, size: int) -> Iterator[bytes]:
    """Yield the ``size`` bytes of an archive in chunks, for a server that is not asynchronous."""
    for offset in range(0, size, CHUNK_BYTES):
        yield part_reads.run_sync(read_chunk, env, sha256, offset)
