"""Proofs by what is stored of the log are those of its entries, and a longer log takes no more statements."""

from __future__ import annotations

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from marketplace.models import LogPending
from marketplace.provenance.log import append_pending
from marketplace.provenance.proofs import consistency_proof, inclusion_proof, root_hash
from tests.marketplace.provenance import rfc9162
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)

SIZES = (1, 2, 5, 64, 300)


def bodies(count: int) -> list[str]:
    return [f"entry {number}" for number in range(count)]


def grow(env: WorkerEnv, start: int, end: int) -> int:
    """Append entries and return how many statements that took."""
    rows = [LogPending(namespace=env.name, kind="published", body=body) for body in bodies(end)[start:]]
    LogPending.objects.using(env.database).bulk_create(rows)
    with CaptureQueriesContext(connections[env.database]) as seen:
        assert append_pending(env) == end - start
    return len(seen)


def test_proofs_of_a_stored_log_are_accepted_whatever_its_size_and_take_two_statements(env: WorkerEnv) -> None:
    size = 0
    for larger in SIZES:
        grow(env, size, larger)
        size = larger
        leaves = [rfc9162.leaf(body.encode()) for body in bodies(size)]
        root = rfc9162.tree_hash([body.encode() for body in bodies(size)])
        for number in {0, size // 3, size // 2, size - 1}:
            with CaptureQueriesContext(connections[env.database]) as seen:
                path = inclusion_proof(env, number, size)
            assert len(seen) <= 2
            assert rfc9162.is_included(leaves[number], number, size, path, root)
            first = number + 1
            with CaptureQueriesContext(connections[env.database]) as seen:
                path = consistency_proof(env, first, size)
                before = root_hash(env, first)
            assert len(seen) <= 4
            assert before == rfc9162.tree_hash([body.encode() for body in bodies(first)])
            assert rfc9162.is_consistent(first, size, path, before, root)


def test_to_append_to_a_long_log_takes_the_statements_of_a_short_one(env: WorkerEnv) -> None:
    grow(env, 0, 5)
    # Each adds an entry whose number is odd, which completes a subtree.
    short = grow(env, 5, 6)
    grow(env, 6, 301)
    assert grow(env, 301, 302) == short
