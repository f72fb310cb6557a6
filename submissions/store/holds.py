"""Hand a submission to a person, and count the recoveries that come before that."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.conf import settings

from submissions.states import State
from submissions.store.records import Submission
from submissions.store.transitions import transition
from submissions.verification.verdict import Verdict
from vskill.environments import WorkerEnv
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

RECOVERIES_KEPT: Final = timedelta(hours=24)


def is_decided(submission: Submission) -> bool:
    """Return whether the checks have come to a verdict, so that only publication is missing."""
    return submission.state in (State.AUTO_APPROVED, State.VENDOR_APPROVED)


def hold(env: WorkerEnv, submission: Submission, *, reason: str, actor: str, trigger: str) -> Submission:
    """Move a submission to ON_HOLD, and return it; one that was not decided gets the verdict ``inconclusive``.

    ``reason``, ``actor`` and ``trigger`` go into its history. Raises what ``transition`` raises.
    """
    changes = {} if is_decided(submission) else {"verdict": Verdict.INCONCLUSIVE}
    return transition(env, submission, State.ON_HOLD, reason=reason, actor=actor, trigger=trigger, changes=changes)


def _recoveries_key(submission_id: str) -> str:
    return f"recovery:{submission_id}"


def count_recoveries(env: WorkerEnv, submission_id: str) -> int:
    """Return how often a submission was put back by recovery within ``RECOVERIES_KEPT``."""
    outcome = KVNamespace(KVEntry, env).get_sync(_recoveries_key(submission_id))
    if outcome.absent:
        return 0
    value = outcome.value
    attempts = value.get("attempts") if isinstance(value, dict) else None
    # A count that cannot be read counts as used up: a person looks at it, and nothing is retried for ever.
    return attempts if isinstance(attempts, int) else int(settings.RECOVERY_MAX_ATTEMPTS)


def remember_recoveries(env: WorkerEnv, submission_id: str, count: int) -> None:
    """Write how often a submission was put back by recovery."""
    KVNamespace(KVEntry, env).put_sync(_recoveries_key(submission_id), {"attempts": count}, ttl=RECOVERIES_KEPT)


def forget_recoveries(env: WorkerEnv, submission_id: str) -> None:
    """Let a submission be put back by recovery as often as a new one."""
    KVNamespace(KVEntry, env).delete_sync(_recoveries_key(submission_id))
