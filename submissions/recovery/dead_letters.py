"""Work that nobody does any more: messages that were parked, and submissions that recovery has given up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from submissions.models import SUBMISSION_PREFIX, QueueMessage, SubmissionEntry
from submissions.operations import requeue
from submissions.pipeline.process import VERIFY
from submissions.recovery.sweep import RECOVERY_EXHAUSTED
from submissions.states import State
from submissions.store.queries import read_submission
from submissions.store.records import SubmissionNotFound
from vskill.environments import WorkerEnv

LIMIT: Final = 1000


@dataclass(frozen=True)
class DeadWork:
    """A piece of dead work: what it is about, and why it is dead."""

    kind: str
    subject: str
    reason: str


def dead_work(env: WorkerEnv, *, limit: int = LIMIT) -> list[DeadWork]:
    """Return the dead work of an environment, at most ``limit`` pieces, each submission once."""
    parked = QueueMessage.objects.using(env.database).filter(environment=env.name, parked_at__isnull=False)
    found = [
        DeadWork(message.kind, message.subject, message.last_error)
        for message in parked.order_by("parked_at", "id")[:limit]
    ]
    subjects = {(one.kind, one.subject) for one in found}
    held = SubmissionEntry.objects.using(env.database).live().filter(namespace=env.name, state=State.ON_HOLD)
    # The reason stands in the value; what is held for a verdict is a person's to decide, and no dead work.
    exhausted = held.filter(value__contains=f'"reason":"{RECOVERY_EXHAUSTED}').order_by("state_at")
    for key in exhausted.values_list("key", flat=True)[:limit]:
        submission_id = str(key).removeprefix(SUBMISSION_PREFIX)
        if (VERIFY, submission_id) not in subjects:
            found.append(DeadWork(VERIFY, submission_id, RECOVERY_EXHAUSTED))
    return found[:limit]


def retry(env: WorkerEnv, work: DeadWork, *, actor: str, reason: str) -> bool:
    """Let a piece of dead work be done again, its counts forgotten; False where nothing of it is left to do.

    A submission is checked again from the start. A message of any other kind is put back as it was sent.
    """
    with transaction.atomic(using=env.database):
        if work.kind == VERIFY:
            try:
                submission = read_submission(env, work.subject)
            except SubmissionNotFound:
                return False
            if submission.state is State.PUBLISHED:
                return False
            requeue(env, work.subject, actor=actor, reason=reason)
            return True
        parked = QueueMessage.objects.using(env.database).filter(
            environment=env.name, kind=work.kind, subject=work.subject
        )
        if parked.filter(parked_at__isnull=True).exists():
            return False
        # One of them is enough: they are about the same.
        newest = list(parked.order_by("-parked_at").values_list("pk", flat=True)[:1])
        return bool(
            parked.filter(pk__in=newest).update(parked_at=None, errors=0, crashes=0, available_at=Now(), due_at=Now())
        )
