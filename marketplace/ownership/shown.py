"""What pages say of who owns a publisher."""

from __future__ import annotations

from typing import Any

from marketplace.ownership.claims import PROOF_WORDS, Proof, owner_claim
from vskill.environments import WorkerEnv


def owner_of(env: WorkerEnv, publisher: str) -> dict[str, Any] | None:
    """Return by whom, since when and by which proof a publisher is claimed, by its identity, or ``None``."""
    claim = owner_claim(env, publisher)
    if claim is None:
        return None
    return {"by": claim.account_name, "since": claim.proven_at, "proof": PROOF_WORDS[Proof(claim.proof)]}
