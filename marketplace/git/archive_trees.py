"""The git objects of a stored archive: where the deflated bytes of each file are in it, and the id of its tree."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Final

from marketplace.artifacts.archives import packed_members
from marketplace.artifacts.git_names import is_meant_for_git
from marketplace.errors import MarketplaceError
from marketplace.git.objects import BLOB, Folder, Object, object_id
from marketplace.models import ArchiveBlob
from vskill.environments import WorkerEnv

# Ids of trees that a process remembers: some five megabytes.
_REMEMBERED: Final = 20_000

_known: Final[OrderedDict[str, bytes | str]] = OrderedDict()
_known_lock: Final = Lock()


class UnfitForGit(MarketplaceError):
    """A file of a version has a name that means something to git itself, so git would not give what was checked."""

    code = "unfit_for_git"


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """A file of an archive as git names it: its deflated bytes are in the zip from ``start`` to before ``end``."""

    id: bytes
    size: int
    start: int
    end: int
    adler32: int


@dataclass(frozen=True, slots=True)
class ArchiveTree:
    """The objects of a zip ``sha256`` (hex): trees, of which the last one is the whole, and blobs in their order."""

    sha256: str
    trees: tuple[Object, ...]
    blobs: tuple[StoredBlob, ...]

    @property
    def id(self) -> bytes:
        """Return the id of the whole tree."""
        return self.trees[-1].id


def read_archive_tree(env: WorkerEnv, sha256: str) -> ArchiveTree:
    """Return the git objects of the stored zip ``sha256`` (hex); raise ``UnfitForGit`` for names that git reserves."""
    content = bytes(ArchiveBlob.objects.using(env.database).values_list("content", flat=True).get(sha256=sha256))
    folder = Folder()
    blobs = []
    for one in packed_members(content):
        _check(one.member.path)
        known = object_id(BLOB, one.member.content)
        size, adler32 = len(one.member.content), zlib.adler32(one.member.content)
        blobs.append(StoredBlob(known, size, one.place.start, one.place.end, adler32))
        folder.add_file(one.member.path, known, executable=one.member.executable)
    found = ArchiveTree(sha256, tuple(folder.trees()), tuple(blobs))
    _remember(sha256, found.id)
    return found


def archive_tree_id(env: WorkerEnv, sha256: str) -> bytes:
    """Return the id of the tree of a stored zip, remembered or read; raise as ``read_archive_tree`` does."""
    with _known_lock:
        if (known := _known.get(sha256)) is not None:
            _known.move_to_end(sha256)
    if isinstance(known, str):
        raise UnfitForGit(known)
    if known is not None:
        return known
    try:
        return read_archive_tree(env, sha256).id
    except UnfitForGit as error:
        # Otherwise whoever asks again has it read again, as often as they like.
        _remember(sha256, str(error))
        raise


def _remember(sha256: str, tree: bytes | str) -> None:
    with _known_lock:
        _known[sha256] = tree
        _known.move_to_end(sha256)
        while len(_known) > _REMEMBERED:
            _known.popitem(last=False)


def _check(path: str) -> None:
    if is_meant_for_git(path):
        raise UnfitForGit(
            f"It has a file {path!r}, by which git would refuse or change its files. "
            "It is not offered through git; its archives are on its page."
        )
