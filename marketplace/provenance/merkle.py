"""The Merkle tree of a log: hashes, subtrees and proofs, as RFC 6962 and RFC 9162 define them. It knows no storage."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

EMPTY_ROOT: Final = hashlib.sha256(b"").digest()
Node = tuple[int, int]
"""A complete subtree: its level (it has ``2 ** level`` leaves) and its number among those of its level."""

Lookup = Callable[[Node], bytes]
"""Return the hash of a complete subtree."""


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of an entry as a leaf."""
    return hashlib.sha256(b"\0" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node with two children."""
    return hashlib.sha256(b"\1" + left + right).digest()


@dataclass
class Growth:
    """A tree to which leaves are appended, without its older nodes.

    ``size`` is its number of leaves, ``peaks`` the hashes of the complete subtrees that it consists of, the largest
    first. ``made`` collects the complete subtrees with more than one leaf that arise.
    """

    size: int
    peaks: list[bytes]
    made: list[tuple[Node, bytes]] = field(default_factory=list)

    def append(self, leaf: bytes) -> None:
        """Append a leaf by its hash."""
        number, level, one = self.size, 0, leaf
        while number % 2:
            one = node_hash(self.peaks.pop(), one)
            number, level = number // 2, level + 1
            self.made.append(((level, number), one))
        self.peaks.append(one)
        self.size += 1

    @property
    def root(self) -> bytes:
        """Return the root hash."""
        return root_of(self.peaks)


def root_of(peaks: Sequence[bytes]) -> bytes:
    """Return the root hash of a tree with these complete subtrees, the largest first."""
    if not peaks:
        return EMPTY_ROOT
    root = peaks[-1]
    for peak in reversed(peaks[:-1]):
        root = node_hash(peak, root)
    return root


def inclusion(number: int, size: int) -> list[range]:
    """Return the ranges of leaves whose hashes prove leaf ``number`` in a tree of ``size``: PATH of RFC 6962, 2.1.1."""
    start, end, path = 0, size, list[range]()
    while end - start > 1:
        middle = start + _split(end - start)
        if number < middle:
            path.append(range(middle, end))
            end = middle
        else:
            path.append(range(start, middle))
            start = middle
    return path[::-1]


def consistency(first: int, second: int) -> list[range]:
    """Return the ranges that prove that a tree of ``second`` leaves begins with that of ``first``: PROOF of 2.1.2.

    ``first`` is at least 1 and at most ``second``.
    """
    start, end, whole, path = 0, second, True, list[range]()
    while first != end:
        middle = start + _split(end - start)
        if first <= middle:
            path.append(range(middle, end))
            end = middle
        else:
            path.append(range(start, middle))
            start, whole = middle, False
    if not whole:
        path.append(range(start, end))
    return path[::-1]


def nodes_of(ranges: Iterable[range]) -> set[Node]:
    """Return the complete subtrees by which the hashes of some ranges of leaves are computed."""
    return {node for one in ranges for node in _complete(one)}


def hash_of(leaves: range, find: Lookup) -> bytes:
    """Return the hash of a range of leaves that is a subtree of some tree."""
    return root_of([find(node) for node in _complete(leaves)])


def _complete(leaves: range) -> list[Node]:
    """Return the complete subtrees in a range, the largest first; the range begins where a subtree of a tree does."""
    found, start = list[Node](), leaves.start
    while start < leaves.stop:
        level = (leaves.stop - start).bit_length() - 1
        found.append((level, start >> level))
        start += 1 << level
    return found


def _split(size: int) -> int:
    """Return the largest power of two below ``size``."""
    return 1 << (size - 1).bit_length() - 1


def is_included(leaf: bytes, number: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Tell whether a proof by ``inclusion`` leads from the hash of a leaf to the root hash of a tree of ``size``."""
    ranges = inclusion(number, size)
    if len(path) != len(ranges):
        return False
    one = leaf
    for beside, other in zip(ranges, path, strict=True):
        one = node_hash(other, one) if beside.stop <= number else node_hash(one, other)
    return one == root
