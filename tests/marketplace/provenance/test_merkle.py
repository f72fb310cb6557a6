"""The tree of the log is that of RFC 6962: known hashes, and proofs that a verifier written from RFC 9162 accepts."""

from __future__ import annotations

from marketplace.provenance import merkle
from tests.marketplace.provenance import rfc9162

MOST = 33


def tree(count: int) -> tuple[list[bytes], merkle.Growth, dict[merkle.Node, bytes]]:
    """Return so many entries, the tree that they grow into, and all of its complete subtrees."""
    entries = [f"entry {number}".encode() for number in range(count)]
    grown = merkle.Growth(0, [])
    stored = {}
    for number, entry in enumerate(entries):
        stored[0, number] = merkle.leaf_hash(entry)
        grown.append(stored[0, number])
    return entries, grown, stored | dict(grown.made)


def test_the_hashes_are_those_of_the_public_test_vectors_of_certificate_transparency() -> None:
    vectors = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    grown = merkle.Growth(0, [])
    assert grown.root.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    roots = []
    for entry in vectors:
        grown.append(merkle.leaf_hash(bytes.fromhex(entry)))
        roots.append(grown.root.hex())
    assert roots[0] == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert roots[6] == "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"
    assert roots[7] == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


def test_every_proof_of_every_small_tree_is_accepted_and_a_changed_one_is_not() -> None:
    _entries, _grown, stored = tree(MOST)
    for size in range(1, MOST + 1):
        entries, grown, _stored = tree(size)
        root = grown.root
        assert root == rfc9162.tree_hash(entries)
        for index in range(size):
            path = [merkle.hash_of(one, stored.__getitem__) for one in merkle.inclusion(index, size)]
            assert rfc9162.is_included(rfc9162.leaf(entries[index]), index, size, path, root)
            assert not rfc9162.is_included(rfc9162.leaf(b"another"), index, size, path, root)
            assert merkle.is_included(rfc9162.leaf(entries[index]), index, size, path, root)
            assert not merkle.is_included(rfc9162.leaf(b"another"), index, size, path, root)
        for first in range(1, size + 1):
            before = rfc9162.tree_hash(entries[:first])
            path = [merkle.hash_of(one, stored.__getitem__) for one in merkle.consistency(first, size)]
            assert rfc9162.is_consistent(first, size, path, before, root)
            assert not rfc9162.is_consistent(first, size, path, rfc9162.leaf(b"another"), root)
