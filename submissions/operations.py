"""What operators do with submissions: each operation is one transaction, guarded by the version that was read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db import IntegrityError, transaction

from marketplace.known_bad.entries import BadContent, remember
from marketplace.likeness.signature import signature_from_value
from marketplace.skills.blocklist import BlockKind, add_block
from marketplace.skills.publishers import publisher_identity
from submissions import messages
from submissions.states import ACTIVE_STATES, IllegalTransition, State
from submissions.store.decided import answered, read_seen, settle_review
from submissions.store.evidence import read_signature_sync
from submissions.store.holds import forget_recoveries
from submissions.store.queries import live_submission, read_submission
from submissions.store.records import Submission, SubmissionNotFound
from submissions.store.signs import SignOutcome
from submissions.store.transitions import repeat, transition
from vskill.environments import WorkerEnv
from vskill.errors import VskillError

TRIGGER: Final = "operator"
# Received before ordinary messages of the same publisher, because a person is waiting for the answer.
OPERATOR_PRIORITY: Final = 10


class NeverScanned(VskillError):
    """A submission cannot be approved because none of its content was ever checked; nothing was changed."""

    code = "never_scanned"


class NewerSubmission(VskillError):
    """Another submission of the same skill is on its way, so this one cannot be checked again; nothing was changed."""

    code = "newer_submission"


def _forget_failures(env: WorkerEnv, submission_id: str) -> None:
    """Let a submission be recovered as often as a new one, and delete its dead letters."""
    forget_recoveries(env, submission_id)
    messages.forget_parked(env, submission_id)


def requeue(env: WorkerEnv, submission_id: str, *, actor: str, reason: str, seen: int | None = None) -> Submission:
    """Check a submission again from the start, and return it; one that is queued keeps its place and is left alone.

    ``actor`` and ``reason`` go into its history, here and in every operation below; ``seen`` is the version that was
    looked at. Raises ``NewerSubmission`` where another submission of the same skill is on its way, and
    ``VersionConflict`` where ``submission_id`` has moved since it was ``seen``.
    """
    try:
        return _requeue(env, submission_id, actor, reason, seen)
    except IntegrityError as error:
        # The index that allows one live submission a skill; another may have become live at this moment.
        submission = read_submission(env, submission_id)
        other = live_submission(env, submission.text("identity"))
        if other is None or other == submission_id:
            raise
        raise NewerSubmission(
            f"Another submission of this skill, {other}, is on its way. This one was left as it is."
        ) from error


def _requeue(env: WorkerEnv, submission_id: str, actor: str, reason: str, seen: int | None) -> Submission:
    with transaction.atomic(using=env.database):
        submission = read_seen(env, submission_id, seen)
        _forget_failures(env, submission_id)
        if submission.state in ACTIVE_STATES:
            if not messages.send(env, submission_id, priority=OPERATOR_PRIORITY):
                return submission
            return repeat(env, submission, reason=reason, actor=actor, trigger=TRIGGER)
        requeued = transition(
            env, submission, State.RECEIVED, reason=reason, actor=actor, trigger=TRIGGER, by_operator=True
        )
        # The worker that has just ended it may not have settled its message yet; that message must not be taken for
        # the new one.
        messages.send(env, submission_id, priority=OPERATOR_PRIORITY, restart=True)
        return requeued


def retry(env: WorkerEnv, kind: str, subject: str, *, actor: str, reason: str) -> bool:
    """Let the work of a dead letter be done again, its counters reset; False where nothing of it is left to do.

    ``kind`` is that of its message and ``subject`` the id of what it is about. A submission is checked again from the
    start, and ``actor`` and ``reason`` go into its history. A message of any other kind is queued as it was sent.
    """
    with transaction.atomic(using=env.database):
        if kind != messages.VERIFY:
            return messages.unpark(env, kind, subject)
        try:
            submission = read_submission(env, subject)
        except SubmissionNotFound:
            return False
        if submission.state is State.PUBLISHED:
            return False
        requeue(env, subject, actor=actor, reason=reason)
        return True


def approve(env: WorkerEnv, submission_id: str, *, actor: str, reason: str, seen: int | None = None) -> Submission:
    """Let a held submission be published: the content that was checked, or nothing.

    ``actor`` and ``reason`` are kept with the approval and in the history of ``submission_id``. ``seen`` is the version
    that was looked at. Raises ``NeverScanned`` where no content was checked, ``IllegalTransition`` where it is not
    held, and ``VersionConflict`` where it has moved since it was ``seen``.
    """
    with transaction.atomic(using=env.database):
        submission = read_seen(env, submission_id, seen)
        # The pipeline approves from the states of checking; a person must not end a check half-way.
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
            changes={
                "approvedBy": actor,
                "approvalReason": reason,
                **answered(submission, SignOutcome.OVERTURNED, actor=actor, words=reason),
            },
            by_operator=True,
        )
        settle_review(env, submission_id, SignOutcome.OVERTURNED)
        _forget_failures(env, submission_id)
        messages.send(env, submission_id, priority=OPERATOR_PRIORITY, restart=True)
        return approved


def reject(env: WorkerEnv, submission_id: str, *, actor: str, reason: str, seen: int | None = None) -> Submission:
    """Refuse a held submission; ``actor`` and ``reason`` go into the history of ``submission_id``.

    ``seen`` is the version that was looked at. Raises ``VersionConflict`` where it has moved since.
    """
    return _end(env, submission_id, State.REJECTED, actor, reason, seen)


def block(env: WorkerEnv, submission_id: str, *, actor: str, reason: str, seen: int | None = None) -> Submission:
    """Refuse a held submission and put the content that was checked on the block list.

    Neither happens without the other. The same content is refused from then on, wherever it comes from; its source is
    not blocked, nor is anything else of its owner. ``actor`` and ``reason`` go into both histories, ``seen`` is the
    version that was looked at. Raises ``NeverScanned`` where no content was checked, ``IllegalTransition`` where
    ``submission_id`` is not held, and ``VersionConflict`` where it has moved since it was ``seen``.
    """
    with transaction.atomic(using=env.database):
        submission = read_seen(env, submission_id, seen)
        if submission.state is not State.ON_HOLD:
            raise IllegalTransition(
                f"Only a held submission is blocked here; this one is {submission.state}. It was left as it is."
            )
        content = submission.text("contentHash")
        if not content:
            raise NeverScanned(
                "It was never checked, so its content is not known. Nothing was changed: refuse it, and put its "
                "repository or its owner on the block list."
            )
        add_block(env, BlockKind.CONTENT, content, actor=actor, reason=reason)
        return _end(env, submission_id, State.BLOCKED, actor, reason, seen)


def refuse_as_known_bad(
    env: WorkerEnv, submission_id: str, *, actor: str, reason: str, seen: int | None = None
) -> Submission:
    """Refuse a held submission and remember its content as known bad, also under other names and where it is similar.

    What is published of it is flagged. ``actor`` and ``reason`` go into both histories, ``seen`` is the version that
    was looked at. Raises ``NeverScanned`` where no content of ``submission_id`` was checked, ``IllegalTransition``
    where it is not held, and ``VersionConflict`` where it has moved since it was ``seen``.
    """
    with transaction.atomic(using=env.database):
        submission = read_seen(env, submission_id, seen)
        if submission.state is not State.ON_HOLD:
            raise IllegalTransition(
                f"Only a held submission is refused here; this one is {submission.state}. It was left as it is."
            )
        if not (content := submission.text("contentHash")):
            raise NeverScanned("It was never checked, so its content is not known. Nothing was changed: refuse it.")
        bad = BadContent(
            name=submission.text("skillName") or submission_id,
            reason=reason,
            content_hash=content,
            signature=signature_from_value(read_signature_sync(env, submission_id)),
            source=f"submission {submission_id}",
            publisher=publisher_identity(submission.text("repoUrl")),
        )
        remember(env, bad, actor=actor)
        return _end(env, submission_id, State.REJECTED, actor, reason, seen)


def dequeue(env: WorkerEnv, submission_id: str, *, actor: str, reason: str, seen: int | None = None) -> Submission:
    """End a submission that waits in the queue, unchecked; ``actor`` and ``reason`` go into its history.

    ``seen`` is the version of ``submission_id`` that was looked at. Raises ``VersionConflict`` where it has moved.
    """
    return _end(env, submission_id, State.DEQUEUED, actor, reason, seen)


def _end(
    env: WorkerEnv, submission_id: str, state: State, actor: str, reason: str, seen: int | None = None
) -> Submission:
    with transaction.atomic(using=env.database):
        submission = read_seen(env, submission_id, seen)
        changes = answered(submission, SignOutcome.UPHELD, actor=actor, words=reason)
        ended = transition(
            env, submission, state, reason=reason, actor=actor, trigger=TRIGGER, changes=changes, by_operator=True
        )
        if submission.state is State.ON_HOLD:
            settle_review(env, submission_id, SignOutcome.UPHELD)
        _forget_failures(env, submission_id)
        return ended


@dataclass(frozen=True)
class Operation:
    """An operation as the admin offers it; ``consequence`` is shown before it is confirmed.

    ``permission`` is what it needs besides the permission to change submissions.
    """

    name: str
    label: str
    consequence: str
    run: Callable[..., Submission]
    permission: str = ""


OPERATIONS: Final = {
    operation.name: operation
    for operation in (
        Operation("requeue", "Check again", "They are checked again, before others of their publisher.", requeue),
        Operation("approve", "Approve", "What was checked is published, if it has not changed.", approve),
        Operation("reject", "Refuse", "They are refused; the submitter sees your reason and may submit again.", reject),
        Operation(
            "block",
            "Refuse and block",
            "They are refused, and what was checked is put on the block list: the same content is refused wherever it "
            "comes from. The submitter sees your reason. What is published already stays: quarantine it as well.",
            block,
            permission="marketplace.add_blockentry",
        ),
        Operation(
            "known-bad",
            "Refuse and remember as known bad",
            "They are refused, and so is the same content under other names, wherever it comes from; what is similar "
            "is held, and what is published of it is flagged. The submitter sees your reason. It is undone under known "
            "bad content.",
            refuse_as_known_bad,
            permission="marketplace.add_knownbad",
        ),
        Operation("dequeue", "Take out of the queue", "They are not checked; the submitter sees your reason.", dequeue),
    )
}
