"""A pack, the form in which git takes objects, made while it is sent and never held as a whole.

The bytes of files come deflated from the stored archives, a chunk at a time; only their frame is git's.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from marketplace.artifacts.stored import read_chunk
from marketplace.git.archive_trees import ArchiveTree, StoredBlob
from marketplace.git.objects import BLOB, Object
from marketplace.git.packets import PART_BYTES
from vskill.environments import WorkerEnv

# That deflated bytes of 32 KiB windows follow, which is what the archives hold.
_ZLIB_HEADER: Final = b"\x78\x9c"


@dataclass(frozen=True, slots=True)
class PackPlan:
    """What a pack holds, each object once: small objects that we made, and the files of archives."""

    small: tuple[Object, ...]
    stored: tuple[tuple[str, StoredBlob], ...]


def plan_pack(objects: Iterable[Object], archives: Iterable[ArchiveTree]) -> PackPlan:
    """Return the plan of a pack with some objects and all of some archives."""
    small: dict[bytes, Object] = {}
    stored: dict[bytes, tuple[str, StoredBlob]] = {}
    for one in objects:
        small.setdefault(one.id, one)
    for archive in archives:
        for tree in archive.trees:
            small.setdefault(tree.id, tree)
        for blob in archive.blobs:
            if blob.id not in small:
                stored.setdefault(blob.id, (archive.sha256, blob))
    return PackPlan(tuple(small.values()), tuple(stored.values()))


def pack(env: WorkerEnv, plan: PackPlan) -> Iterator[bytes]:
    """Yield the bytes of a pack, at most ``PART_BYTES`` at a time; call it on a database thread."""
    digest = hashlib.sha1(usedforsecurity=False)
    for part in _gathered(_parts(env, plan)):
        digest.update(part)
        yield part
    yield digest.digest()


def _parts(env: WorkerEnv, plan: PackPlan) -> Iterator[bytes]:
    yield b"PACK" + struct.pack(">II", 2, len(plan.small) + len(plan.stored))
    for one in plan.small:
        yield _header(one.kind, len(one.content)) + zlib.compress(one.content)
    window = _Window(env)
    for sha256, blob in plan.stored:
        yield _header(BLOB, blob.size) + _ZLIB_HEADER
        yield from window.read(sha256, blob.start, blob.end)
        yield struct.pack(">I", blob.adler32)


class _Window:
    """The chunk of an archive that was read last: small files that lie beside each other are read at once."""

    def __init__(self, env: WorkerEnv) -> None:
        self._env = env
        self._sha256 = ""
        self._start = 0
        self._chunk = b""

    def read(self, sha256: str, start: int, end: int) -> Iterator[bytes]:
        while start < end:
            if sha256 != self._sha256 or not self._start <= start < self._start + len(self._chunk):
                self._chunk = read_chunk(self._env, sha256, start)
                self._sha256, self._start = sha256, start
            part = self._chunk[start - self._start : end - self._start]
            yield part
            start += len(part)


def _header(kind: int, size: int) -> bytes:
    """Return the beginning of an object in a pack: its kind and size, seven bits at a time, the lowest first."""
    written = bytearray()
    byte, size = kind << 4 | size & 0x0F, size >> 4
    while size:
        written.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    return bytes([*written, byte])


def _gathered(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield ``parts`` joined and cut: each piece but the last has ``PART_BYTES``."""
    kept = bytearray()
    for part in parts:
        kept += part
        while len(kept) >= PART_BYTES:
            yield bytes(kept[:PART_BYTES])
            del kept[:PART_BYTES]
    if kept:
        yield bytes(kept)
