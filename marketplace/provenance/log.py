"""Append to the log what was written beside each change, in order, and sign its heads.

The log is a Merkle tree as in RFC 6962. One transaction moves a slice of what is pending into it, under a lock on the
row of its state, so that two processes which append at once go one after the other, and a kill leaves a slice done or
not begun.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.db import transaction

from marketplace.models import LogLeaf, LogNode, LogPending, LogState, SigningKey, TreeHead
from marketplace.provenance.dsse import BadSignature
from marketplace.provenance.keys import PublicKey, SigningKeys, is_signed_by
from marketplace.provenance.known_keys import hold_good_keys
from marketplace.provenance.merkle import Growth, leaf_hash
from marketplace.provenance.trust import TRUSTED_HEADS
from vskill.environments import WorkerEnv

_AT_ONCE: Final = 500
# The kind of a signature in a signed note: Ed25519.
_ED25519: Final = b"\x01"
_DASH: Final = "\N{EM DASH}"


def append_pending(env: WorkerEnv) -> int:
    """Append all that is pending and return how many entries that were; what is written meanwhile may stay."""
    # Outside of the transactions below: where two make the row at once, one of them gets that of the other.
    LogState.objects.using(env.database).get_or_create(namespace=env.name)
    appended = 0
    while moved := _append_some(env):
        appended += moved
    return appended


def _append_some(env: WorkerEnv) -> int:
    with transaction.atomic(using=env.database):
        state = LogState.objects.using(env.database).select_for_update().get(namespace=env.name)
        pending = LogPending.objects.using(env.database).filter(namespace=env.name)
        # Read under the lock. A smaller number that is committed later is appended later.
        rows = list(pending.order_by("id")[:_AT_ONCE])
        if not rows:
            return 0
        tree = growth_of(state)
        leaves = []
        for row in rows:
            digest = leaf_hash(row.body.encode())
            place = {"number": tree.size, "version_number": row.version_number, "kind": row.kind}
            leaves.append(LogLeaf(namespace=env.name, body=row.body, leaf_hash=digest.hex(), **place))
            tree.append(digest)
        LogLeaf.objects.using(env.database).bulk_create(leaves)
        LogNode.objects.using(env.database).bulk_create(
            LogNode(namespace=env.name, level=level, number=number, node_hash=digest.hex())
            for (level, number), digest in tree.made
        )
        pending.filter(pk__in=[row.pk for row in rows]).delete()
        state.size, state.peaks = tree.size, " ".join(peak.hex() for peak in tree.peaks)
        state.save(using=env.database)
        return len(rows)


def growth_of(state: LogState) -> Growth:
    """Return the tree that a stored state describes."""
    return Growth(state.size, [bytes.fromhex(peak) for peak in state.peaks.split()])


def sign_head(env: WorkerEnv, keys: SigningKeys, row: SigningKey) -> TreeHead | None:
    """Sign the log as it is and return its head, ``None`` where that was signed before or the log is empty.

    ``row`` is that of the key for statements; raises ``KeyCompromised``.
    """
    heads = TreeHead.objects.using(env.database)
    state = LogState.objects.using(env.database).filter(namespace=env.name).first()
    if state is None or not state.size or heads.filter(namespace=env.name, size=state.size, key=row).exists():
        return None
    root = growth_of(state).root
    with transaction.atomic(using=env.database):
        hold_good_keys(env, [row])
        # Where two sign at once, the first one stays; both say the same.
        head, _created = heads.get_or_create(
            namespace=env.name,
            size=state.size,
            key=row,
            defaults={"root_hash": root.hex(), "note": _note(origin(env), state.size, root, keys.statements)},
        )
    return head


def latest_head(env: WorkerEnv) -> TreeHead | None:
    """Return the newest signed head of the log that is trusted, ``None`` where there is none."""
    heads = TreeHead.objects.using(env.database).filter(TRUSTED_HEADS, namespace=env.name).select_related("key")
    return heads.order_by("-size", "-pk").first()


def origin(env: WorkerEnv) -> str:
    """Return the name of the log, which is the first line of its heads: the address of the registry without scheme."""
    place = env.public_url.partition("://")[2] or env.name
    return f"{place.replace(' ', '-').replace('+', '-')}/log"


def _note(name: str, size: int, root: bytes, key: ed25519.Ed25519PrivateKey) -> str:
    """Return a checkpoint (C2SP tlog-checkpoint): a signed note of the name, the size and the root hash of the log."""
    body = f"{name}\n{size}\n{b64encode(root).decode()}\n"
    signed = _hint(name, key.public_key()) + key.sign(body.encode())
    return f"{body}\n{_DASH} {name} {b64encode(signed).decode()}\n"


def _hint(name: str, key: ed25519.Ed25519PublicKey) -> bytes:
    raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
    return sha256(name.encode() + b"\n" + _ED25519 + raw).digest()[:4]


def read_note(note: str, key: PublicKey) -> tuple[int, bytes]:
    """Return the size and the root hash in a checkpoint; raise ``BadSignature`` where ``key`` did not sign it."""
    body, _, signatures = note.partition("\n\n")
    body += "\n"
    try:
        name, size, root = body.splitlines()[:3]
        signed = b64decode(signatures.removeprefix(f"{_DASH} {name} ").strip(), validate=True)
        head = int(size), b64decode(root, validate=True)
    except ValueError as error:
        raise BadSignature("It is no checkpoint of a log.") from error
    if not is_signed_by(key, signed[4:], body.encode()):
        raise BadSignature("The key did not sign this head of the log.")
    return head
