"""A verifier of Merkle proofs, written from the steps of RFC 9162 and from nothing else of this project."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def leaf(entry: bytes) -> bytes:
    """Return MTH({d(0)}), section 2.1.1."""
    return hashlib.sha256(bytes([0x00]) + entry).digest()


def _inner(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(bytes([0x01]) + left + right).digest()


def tree_hash(entries: Sequence[bytes]) -> bytes:
    """Return MTH(D[n]) by its definition in section 2.1.1."""
    if not entries:
        return hashlib.sha256().digest()
    if len(entries) == 1:
        return leaf(entries[0])
    k = 1
    while k * 2 < len(entries):
        k *= 2
    return _inner(tree_hash(entries[:k]), tree_hash(entries[k:]))


def is_included(leaf_hash: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Verify an inclusion proof by the steps of section 2.1.3.2."""
    if index >= size:
        return False
    fn, sn, r = index, size - 1, leaf_hash
    for p in path:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            r = _inner(p, r)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = _inner(r, p)
        fn, sn = fn >> 1, sn >> 1
    return sn == 0 and r == root


def is_consistent(first: int, second: int, path: Sequence[bytes], first_root: bytes, second_root: bytes) -> bool:
    """Verify a consistency proof of two trees, the first not empty, by the steps of section 2.1.4.2."""
    if first == second:
        return not path and first_root == second_root
    if not path:
        return False
    hashes = list(path)
    if first & (first - 1) == 0:
        hashes.insert(0, first_root)
    fn, sn = first - 1, second - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = hashes[0]
    for c in hashes[1:]:
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr, sr = _inner(c, fr), _inner(c, sr)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = _inner(sr, c)
        fn, sn = fn >> 1, sn >> 1
    return fr == first_root and sr == second_root and sn == 0
