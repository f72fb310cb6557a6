"""Take back the last decision of a reviewer, as far as the table of states permits."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from submissions.operations import TRIGGER, NewerSubmission
from submissions.states import State
from submissions.store.decided import read_seen, settle_review
from submissions.store.queries import history, live_submission, read_submission
from submissions.store.records import Submission
from submissions.store.signs import SignOutcome
from submissions.store.transitions import transition
from vskill.environments import WorkerEnv
from vskill.errors import VskillError


class CannotUndo(VskillError):
    """A decision cannot be taken back; nothing was changed, and the message says what to do instead."""

    code = "cannot_undo"


_INSTEAD = {
    State.PUBLISHED: "It is published already. Quarantine the version under Skills, which withholds it at once.",
    State.BLOCKED: "Its content is on the block list. Take it off there, then choose Check again.",
    State.ON_HOLD: "It is held, so there is nothing to undo.",
}


def undo(
    env: WorkerEnv, submission_id: str, *, actor: str, reason: str, seen: int | None = None, own: bool = False
) -> Submission:
    """Hold a submission again that a reviewer approved or refused, and return it.

    ``actor`` and ``reason`` go into the history of ``submission_id``, and ``seen`` is the version that was looked at.
    Raises ``CannotUndo`` where it has gone on, or with ``own`` where another than ``actor`` decided,
    ``VersionConflict`` where it has moved since it was ``seen``, and ``NewerSubmission`` where another submission of
    the same skill is on its way.
    """
    try:
        with transaction.atomic(using=env.database):
            submission = read_seen(env, submission_id, seen)
            if not _undoable(env, submission):
                instead = _INSTEAD.get(submission.state, "It has gone on since. Look at its history.")
                raise CannotUndo(f"This cannot be undone. {instead} Nothing was changed.")
            if own and history(env, submission.id)[-1].actor != actor:
                raise CannotUndo("Somebody else decided it, who takes it back. Nothing was changed.")
            held = transition(
                env,
                submission,
                State.ON_HOLD,
                reason=reason,
                actor=actor,
                trigger=TRIGGER,
                changes={"approvedBy": "", "approvalReason": "", **_unanswered(submission)},
                by_operator=True,
            )
            settle_review(env, submission_id, SignOutcome.OPEN)
            return held
    except IntegrityError as error:
        # The index that allows one live submission a skill.
        submission = read_submission(env, submission_id)
        other = live_submission(env, submission.text("identity"))
        if other is None or other == submission_id:
            raise
        raise NewerSubmission(
            f"Another submission of this skill, {other}, is on its way. This one was left as it is."
        ) from error


def _undoable(env: WorkerEnv, submission: Submission) -> bool:
    """Return whether the last step of a submission is a reviewer's decision about it while it was held."""
    if submission.state not in (State.AUTO_APPROVED, State.REJECTED):
        return False
    last = history(env, submission.id)[-1:]
    return bool(last) and (last[0].trigger, last[0].from_state) == (TRIGGER, State.ON_HOLD)


def _unanswered(submission: Submission) -> dict[str, object]:
    appeal = submission.value.get("appeal")
    if not isinstance(appeal, dict) or not appeal.get("answer"):
        return {}
    return {"appeal": {name: appeal[name] for name in appeal if name not in ("answer", "words", "answeredBy")}}
