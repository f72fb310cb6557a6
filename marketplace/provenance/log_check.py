"""Compute the log anew from its entries, and compare it with what is stored and with every head that was signed."""

from __future__ import annotations

from marketplace.models import LogLeaf, LogState, TreeHead
from marketplace.provenance.dsse import BadSignature
from marketplace.provenance.keys import load_public
from marketplace.provenance.log import growth_of, read_note
from marketplace.provenance.merkle import Growth, leaf_hash
from vskill.environments import WorkerEnv

_AT_ONCE = 2000


def log_faults(env: WorkerEnv) -> list[tuple[str, str]]:
    """Return what is wrong with the log, as pairs of what it is about and a detail; every entry is read."""
    state = LogState.objects.using(env.database).filter(namespace=env.name).first()
    if state is None:
        return []
    faults: list[tuple[str, str]] = []
    tree = Growth(0, [])
    roots = {0: tree.root}
    heads = TreeHead.objects.using(env.database).filter(namespace=env.name)
    sizes = set(heads.values_list("size", flat=True))
    # What is appended meanwhile is not looked at.
    leaves = LogLeaf.objects.using(env.database).filter(namespace=env.name, number__lt=state.size).order_by("number")
    for number, body, stored in leaves.values_list("number", "body", "leaf_hash").iterator(chunk_size=_AT_ONCE):
        digest = leaf_hash(body.encode())
        if number != tree.size:
            return [*faults, (f"entry {tree.size}", "it is missing from the log")]
        if digest.hex() != stored:
            faults.append((f"entry {number}", "it was changed after it was appended"))
        tree.append(digest)
        tree.made.clear()
        if tree.size in sizes:
            roots[tree.size] = tree.root
    if (tree.size, tree.root) != (state.size, growth_of(state).root):
        faults.append(("log", f"its {tree.size} entries are not those that it has grown by"))
    # Not all at once: a registry of some years has hundreds of thousands.
    for head in heads.select_related("key").order_by("size").iterator(chunk_size=_AT_ONCE):
        try:
            signed = read_note(head.note, load_public(head.key.public_key))
        except BadSignature as error:
            faults.append((f"head of {head.size} entries", str(error)))
            continue
        if signed != (head.size, roots.get(head.size)):
            faults.append((f"head of {head.size} entries", "the entries are not those that were signed"))
    return faults
