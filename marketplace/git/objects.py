"""Git objects: the ids and bytes of blobs, trees and commits that we make, all of SHA-1, as every client reads them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

COMMIT: Final = 1
TREE: Final = 2
BLOB: Final = 3
_NAMES: Final = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}
_FOLDER: Final = b"40000"
_FILE: Final = b"100644"
_EXECUTABLE: Final = b"100755"
# Fixed, because the id of a commit depends on it.
_WHO: Final = b"vskill <vskill@invalid>"


@dataclass(frozen=True, slots=True)
class Object:
    """A small object with its ``content``; ``kind`` is ``COMMIT``, ``TREE`` or ``BLOB``."""

    kind: int
    content: bytes

    @property
    def id(self) -> bytes:
        """Return the id, 20 bytes."""
        return object_id(self.kind, self.content)


def object_id(kind: int, content: bytes) -> bytes:
    """Return the id of an object, 20 bytes."""
    header = b"%s %d\0" % (_NAMES[kind], len(content))
    return hashlib.sha1(header + content, usedforsecurity=False).digest()


@dataclass
class Folder:
    """A folder to be written as a tree: ids of files and of whole trees, and folders in it, each by its name."""

    files: dict[bytes, tuple[bytes, bytes]] = field(default_factory=dict)
    folders: dict[bytes, Folder] = field(default_factory=dict)

    def below(self, parts: Iterable[str]) -> Folder:
        """Return the folder at a path below this one, which is made where it is missing."""
        folder = self
        for part in parts:
            folder = folder.folders.setdefault(part.encode(), Folder())
        return folder

    def add_file(self, path: str, blob: bytes, *, executable: bool = False) -> None:
        """Put a file with the id ``blob`` at ``path``."""
        *parts, name = path.split("/")
        self.below(parts).files[name.encode()] = (_EXECUTABLE if executable else _FILE, blob)

    def add_tree(self, path: str, tree: bytes) -> None:
        """Put the tree with the id ``tree`` at ``path``."""
        *parts, name = path.split("/")
        self.below(parts).files[name.encode()] = (_FOLDER, tree)

    def trees(self) -> list[Object]:
        """Return the trees of this folder and of those in it; its own is the last."""
        made: list[Object] = []
        entries = dict(self.files)
        for name, folder in self.folders.items():
            made += folder.trees()
            entries[name] = (_FOLDER, made[-1].id)
        return [*made, Object(TREE, _tree(entries))]


def _tree(entries: Mapping[bytes, tuple[bytes, bytes]]) -> bytes:
    # Git sorts a folder as if its name ended with a slash.
    ordered = sorted(entries.items(), key=lambda entry: entry[0] + (b"/" if entry[1][0] == _FOLDER else b""))
    return b"".join(b"%s %s\0%s" % (mode, name, known) for name, (mode, known) in ordered)


def commit(tree: bytes, message: str, moment: datetime) -> Object:
    """Return a commit without parents of a ``tree``, made by this registry at ``moment``."""
    who = b"%s %d +0000" % (_WHO, int(moment.timestamp()))
    content = b"tree %s\nauthor %s\ncommitter %s\n\n%s\n" % (tree.hex().encode(), who, who, message.encode())
    return Object(COMMIT, content)
