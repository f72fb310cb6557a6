"""Proofs about the log: that an entry is in it, and that what it is now begins with what it was."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connections

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
    """Return the stored hashes of complete subtrees, by two statements; a proof needs a few for each level."""
    found: dict[Node, bytes] = {}
    if numbers := [number for level, number in nodes if not level]:
        leaves = LogLeaf.objects.using(env.database).filter(namespace=env.name, number__in=numbers)
        found |= {(0, number): bytes.fromhex(one) for number, one in leaves.values_list("number", "leaf_hash")}
    if inner := [node for node in nodes if node[0]]:
        found |= _inner(env, inner)
    return found


def _inner(env: WorkerEnv, nodes: list[Node]) -> dict[Node, bytes]:
    # One part for each, which is one row of the index. Django takes longer to write such a statement than the database
    # to answer it, and a statement for each level took seven times as long.
    part = (
        f"SELECT level, number, node_hash FROM {LogNode._meta.db_table} "  # noqa: S608 - our own names
        "WHERE namespace = %(namespace)s AND level = %(level{0})s AND number = %(number{0})s"
    )
    values: dict[str, str | int] = {"namespace": env.name}
    for place, (level, number) in enumerate(nodes):
        values |= {f"level{place}": level, f"number{place}": number}
    with connections[env.database].cursor() as cursor:
        cursor.execute(" UNION ALL ".join(part.format(place) for place in range(len(nodes))), values)
        return {(level, number): bytes.fromhex(one) for level, number, one in cursor.fetchall()}
