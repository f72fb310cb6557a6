"""Proofs about the log: that an entry is in it, and that what it is now begins with what it was."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from marketplace.models import LogLeaf, LogNode, LogState
from marketplace.provenance import merkle
from marketplace.provenance.merkle import Node
from vskill.environments import WorkerEnv


def log_size(env: WorkerEnv) -> int:
    """Return how many entries the log has."""
    found = LogState.objects.using(env.database).filter(namespace=env.name).values_list("size", flat=True).first()
    return found or 0


def inclusion_proof(env: WorkerEnv, number: int, size: int) -> list[bytes]:
    """Return the hashes that prove entry ``number`` in the tree of the first ``size`` entries, which the log has."""
    return _hashes(env, merkle.inclusion(number, size))


def consistency_proof(env: WorkerEnv, first: int, second: int) -> list[bytes]:
    """Return the hashes that prove that the tree of ``second`` entries begins with that of ``first``, at least 1."""
    return _hashes(env, merkle.consistency(first, second))


def root_hash(env: WorkerEnv, size: int) -> bytes:
    """Return the root hash of the first ``size`` entries."""
    return _hashes(env, [range(size)])[0] if size else merkle.EMPTY_ROOT


def _hashes(env: WorkerEnv, ranges: Sequence[range]) -> list[bytes]:
    found = _read(env, merkle.nodes_of(ranges))
    return [merkle.hash_of(one, found.__getitem__) for one in ranges]


def _read(env: WorkerEnv, nodes: set[Node]) -> dict[Node, bytes]:
    """Return the stored hashes of complete subtrees; a proof needs a few for each level of the tree."""
    by_level = defaultdict[int, list[int]](list)
    for level, number in nodes:
        by_level[level].append(number)
    found: dict[Node, bytes] = {}
    for level, numbers in by_level.items():
        if level:
            rows = LogNode.objects.using(env.database).filter(namespace=env.name, level=level, number__in=numbers)
            hashes = dict(rows.values_list("number", "node_hash"))
        else:
            leaves = LogLeaf.objects.using(env.database).filter(namespace=env.name, number__in=numbers)
            hashes = dict(leaves.values_list("number", "leaf_hash"))
        found |= {(level, number): bytes.fromhex(digest) for number, digest in hashes.items()}
    return found
