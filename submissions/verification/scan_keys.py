"""Name the engines and rules of a scan by one key, so that nothing is scanned twice by the same ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from submissions.verification.engines import get_engines
from submissions.verification.engines.base import Engine, EngineResult
from submissions.verification.verdict import VerdictPolicy
from vskill.environments import WorkerEnv


def engines_of(env: WorkerEnv) -> list[Engine]:
    """Return the engines of both tiers; raises UnknownEngine."""
    return get_engines((*env.policy.tier1_engines, *env.policy.tier2_engines))


def current_key(engines: Sequence[Engine]) -> str:
    """Return the key of a scan by these engines under the present rules; raises EngineUnavailable.

    A content, as its hash names it, that has been scanned under this key is not scanned again.
    """
    policy = VerdictPolicy(engines=tuple(engine.name for engine in engines))
    return _key(((one.name, one.version, one.adapter) for one in engines), policy.policy_hash)


def key_of_results(results: Iterable[EngineResult], policy_hash: str) -> str:
    """Return the key of a scan with these results, which led to a decision with this hash of the policy."""
    return _key(((one.engine, one.engine_version, one.adapter) for one in results), policy_hash)


def _key(engines: Iterable[tuple[str, str, int]], policy_hash: str) -> str:
    value = json.dumps([sorted(engines), policy_hash])
    return hashlib.sha256(value.encode()).hexdigest()[:32]
