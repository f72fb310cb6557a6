"""Hand a submission to a person, with the verdict that it then has."""

from __future__ import annotations

from submissions.states import State
from submissions.store.records import Submission
from submissions.store.transitions import transition
from submissions.verification.verdict import Verdict
from vskill.environments import WorkerEnv


def is_decided(submission: Submission) -> bool:
    """Return whether the checks had come to their verdict, so that only its publication is missing."""
    return submission.state in (State.AUTO_APPROVED, State.VENDOR_APPROVED)


def hold(env: WorkerEnv, submission: Submission, *, reason: str, actor: str, trigger: str) -> Submission:
    """Move a submission to ON_HOLD as ``transition`` does; one that was not decided is inconclusive from then on."""
    changes = {} if is_decided(submission) else {"verdict": Verdict.INCONCLUSIVE}
    return transition(env, submission, State.ON_HOLD, reason=reason, actor=actor, trigger=trigger, changes=changes)
