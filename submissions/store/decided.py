"""What goes with a reviewer's decision: nobody's is overwritten, an open appeal is answered, accuracy is counted."""

from __future__ import annotations

from typing import Any

from submissions.review_rank import has_open_appeal
from submissions.store.held_files import KEPT_AFTER_DECISION, let_expire
from submissions.store.queries import read_submission
from submissions.store.records import Submission
from submissions.store.signs import SignOutcome, decide_signs
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict


def read_seen(env: WorkerEnv, submission_id: str, seen: int | None) -> Submission:
    """Return a submission; raise ``VersionConflict`` where it is not at ``seen``, if that is a version."""
    submission = read_submission(env, submission_id)
    if seen is not None and submission.version != seen:
        raise VersionConflict(
            f"Somebody else has moved it meanwhile: it is {submission.state} now. Your decision was not taken."
        )
    return submission


def answered(submission: Submission, outcome: SignOutcome, *, actor: str, words: str) -> dict[str, Any]:
    """Return what changes in the value of ``submission`` where its open appeal is answered by a decision.

    ``outcome`` says whether the hold or refusal is upheld or overturned, ``words`` are those of the reviewer ``actor``.
    """
    if not has_open_appeal(submission.value):
        return {}
    return {"appeal": {**submission.value["appeal"], "answer": str(outcome), "words": words, "answeredBy": actor}}


def settle_review(env: WorkerEnv, submission_id: str, outcome: SignOutcome) -> None:
    """Count a decision for the rules that held a submission, and let what was kept for its review go later.

    ``SignOutcome.OPEN`` takes a decision back.
    """
    decide_signs(env, submission_id, outcome)
    let_expire(env, submission_id, after=None if outcome is SignOutcome.OPEN else KEPT_AFTER_DECISION)
