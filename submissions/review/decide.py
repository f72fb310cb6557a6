"""The decisions of a reviewer: those operations of the admin that end a hold, and the answer to an appeal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db import transaction

from submissions.operations import OPERATIONS, TRIGGER, approve, block, refuse_as_known_bad, reject
from submissions.review_rank import has_open_appeal
from submissions.states import State
from submissions.store.decided import answered, read_seen
from submissions.store.records import Submission
from submissions.store.signs import SignOutcome
from submissions.store.transitions import repeat, touch, transition
from vskill.environments import WorkerEnv


@dataclass(frozen=True)
class Choice:
    """A decision as the page offers it: ``done`` says what it was afterwards; see ``Operation`` for ``permission``."""

    name: str
    done: str
    permission: str = ""


DECISIONS: Final = {
    one.name: one
    for one in (
        Choice("approve", "approved"),
        Choice("reject", "refused"),
        Choice("block", "refused and blocked", OPERATIONS["block"].permission),
        Choice("known-bad", "refused and remembered as known bad", OPERATIONS["known-bad"].permission),
    )
}
_RUNS: Final = {"approve": approve, "reject": reject, "block": block, "known-bad": refuse_as_known_bad}


def decide(env: WorkerEnv, submission_id: str, choice: Choice, *, actor: str, reason: str, seen: int) -> Submission:
    """Decide about a held submission, or about the appeal against a refusal, and return the submission.

    ``actor`` and ``reason`` go into the history of ``submission_id``; ``seen`` is the version that the reviewer looked
    at. Raises what the operation named by ``choice`` raises: ``VersionConflict`` where somebody else was first.
    """
    with transaction.atomic(using=env.database):
        submission = read_seen(env, submission_id, seen)
        if submission.state is State.REJECTED and has_open_appeal(submission.value):
            if choice.name == "reject":
                return _uphold(env, submission, actor, reason)
            seen = hold_again(env, submission, actor).version
        return _RUNS[choice.name](env, submission_id, actor=actor, reason=reason, seen=seen)


def hold_again(env: WorkerEnv, submission: Submission, actor: str) -> Submission:
    """Take back the refusal of a submission that is appealed, so that the decision is the one about a held one.

    Within the caller's transaction; ``actor`` goes into its history.
    """
    return transition(env, submission, State.ON_HOLD, reason="appealed", actor=actor, trigger=TRIGGER, by_operator=True)


def _uphold(env: WorkerEnv, submission: Submission, actor: str, reason: str) -> Submission:
    changes = answered(submission, SignOutcome.UPHELD, actor=actor, words=reason)
    kept = touch(env, submission, changes)
    return repeat(env, kept, reason=f"appeal answered: {reason}", actor=actor, trigger=TRIGGER)
