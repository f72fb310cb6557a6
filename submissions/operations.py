"""What an operator does with a submission: each is one transaction, guarded by the version that was read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db import transaction

from submissions.models import QueueMessage
from submissions.pipeline.process import VERIFY
from submissions.queue.database import get_queue
from submissions.states import ACTIVE_STATES, IllegalTransition, State
from submissions.store.queries import read_submission
from submissions.store.records import Submission
from submissions.store.transitions import repeat, transition
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

TRIGGER: Final = "operator"
# Before work that nobody asked for by name: a person waits for the answer.
OPERATOR_PRIORITY: Final = 10


class NeverScanned(VskillError):
    """A submission is to be approved of which no content was ever checked; nothing was changed."""

    code = "never_scanned"


def _forget_failures(env: WorkerEnv, submission_id: str) -> None:
    """Give the submission its recoveries back, and take the messages out that were parked for it."""
    KVNamespace(KVEntry, env).delete_sync(f"recovery:{submission_id}")
    parked = QueueMessage.objects.using(env.database).filter(
        environment=env.name, kind=VERIFY, subject=submission_id, parked_at__isnull=False
    )
    parked.delete()


def _send(env: WorkerEnv, submission_id: str, *, anew: bool = False) -> bool:
    return get_queue(env).send(env.name, VERIFY, submission_id, priority=OPERATOR_PRIORITY, anew=anew)


def requeue(env: WorkerEnv, submission_id: str, *, actor: str, reason: str) -> Submission:
    """Check a submission again from the start; one that is on its way keeps its place and is left alone."""
    with transaction.atomic(using=env.database):
        submission = read_submission(env, submission_id)
        _forget_failures(env, submission_id)
        if submission.state in ACTIVE_STATES:
            if not _send(env, submission_id):
                return submission
            return repeat(env, submission, reason=reason, actor=actor, trigger=TRIGGER)
        requeued = transition(
            env, submission, State.RECEIVED, reason=reason, actor=actor, trigger=TRIGGER, by_operator=True
        )
        # A worker that has just ended it may not have settled its message yet: that message is not the new work's.
        _send(env, submission_id, anew=True)
        return requeued


def approve(env: WorkerEnv, submission_id: str, *, actor: str, reason: str) -> Submission:
    """Let a held submission be published; the content that was checked is what will be published, or nothing.

    Raises ``NeverScanned`` where no content was checked, and ``IllegalTransition`` where it is not held.
    """
    with transaction.atomic(using=env.database):
        submission = read_submission(env, submission_id)
        # The pipeline may go to AUTO_APPROVED from the states of checking; a person may not end a check half-way.
        if submission.state is not State.ON_HOLD:
            raise IllegalTransition(
                f"Only a held submission is approved; this one is {submission.state}. It was left as it is."
            )
        if not submission.text("contentHash"):
            raise NeverScanned("It was never checked, so there is nothing to approve. Nothing was changed; requeue it.")
        approved = transition(
            env,
            submission,
            State.AUTO_APPROVED,
            reason=reason,
            actor=actor,
            trigger=TRIGGER,
            changes={"approvedBy": actor, "approvalReason": reason},
            by_operator=True,
        )
        _forget_failures(env, submission_id)
        _send(env, submission_id, anew=True)
        return approved


def reject(env: WorkerEnv, submission_id: str, *, actor: str, reason: str) -> Submission:
    """Refuse a held submission."""
    return _end(env, submission_id, State.REJECTED, actor, reason)


def dequeue(env: WorkerEnv, submission_id: str, *, actor: str, reason: str) -> Submission:
    """Take a submission that waits out of the queue."""
    return _end(env, submission_id, State.DEQUEUED, actor, reason)


def _end(env: WorkerEnv, submission_id: str, state: State, actor: str, reason: str) -> Submission:
    with transaction.atomic(using=env.database):
        submission = read_submission(env, submission_id)
        ended = transition(env, submission, state, reason=reason, actor=actor, trigger=TRIGGER, by_operator=True)
        _forget_failures(env, submission_id)
        return ended


@dataclass(frozen=True)
class Operation:
    """An operation as the admin offers it; ``consequence`` is said before it is confirmed."""

    name: str
    label: str
    consequence: str
    run: Callable[..., Submission]


OPERATIONS: Final = {
    operation.name: operation
    for operation in (
        Operation("requeue", "Check again", "They are checked again from the start, before other work.", requeue),
        Operation("approve", "Approve", "What was checked is published, if it has not changed.", approve),
        Operation("reject", "Refuse", "They are refused; the submitter sees your reason and may submit again.", reject),
        Operation("dequeue", "Take out of the queue", "They are not checked; the submitter sees your reason.", dequeue),
    )
}
