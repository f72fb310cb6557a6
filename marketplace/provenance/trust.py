"""Tell whether a signature is trusted: none is that a key made after somebody else may have had it."""

from __future__ import annotations

from datetime import datetime

from django.db.models import F, Q

from marketplace.models import SigningKey, VersionSignature
from marketplace.provenance.keys import SigningKeyError
from marketplace.provenance.reading import signs
from vskill.environments import WorkerEnv
from vskill.kv.clock import isoformat

TRUSTED_HEADS = Q(key__compromised_since=None) | Q(signed_at__lt=F("key__compromised_since"))
"""Which heads of the log are signed by a key that was good at the time."""


class KeyCompromised(SigningKeyError):
    """A key is compromised, and nothing is signed with it any more."""

    code = "key_compromised"


def is_trusted(key: SigningKey, signed_at: datetime) -> bool:
    """Tell whether what ``key`` signed at a time, by the record of the registry, is trusted."""
    return key.compromised_since is None or signed_at < key.compromised_since


def both_trusted(signature: VersionSignature) -> bool:
    """Tell whether the statement and the signature of the files of a version are trusted."""
    return all(is_trusted(key, signature.signed_at) for key in (signature.key, signature.files_key))


def signature_state(env: WorkerEnv, signature: VersionSignature | None) -> str:
    """Return in one word what is so of the ``signature`` of a version, ``None`` where it has none.

    That is ``signed``; ``untrusted`` where somebody else may have had the key; ``pending`` where the version waits for
    its signature; or ``unsigned`` where the registry does not sign.
    """
    if signature is None:
        return "pending" if signs(env) else "unsigned"
    return "signed" if both_trusted(signature) else "untrusted"


def compromised_since(signature: VersionSignature) -> datetime | None:
    """Return from when on a key of a signature is compromised, the earlier time of both, ``None`` where none is."""
    times = [key.compromised_since for key in (signature.key, signature.files_key) if key.compromised_since]
    return min(times, default=None)


def caution(key: SigningKey) -> str:
    """Return what is to be said of a signature by ``key`` that is trusted: that it is from before a theft, or ''."""
    if key.compromised_since is None:
        return ""
    return (
        f", before that key was compromised (from {isoformat(key.compromised_since)} on), by the record of this "
        "registry alone"
    )
