"""Dead letters: work that is not tried again by itself, because its message was parked or recovery gave it up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from submissions import messages
from submissions.models import SubmissionEntry
from submissions.recovery.sweep import RECOVERY_EXHAUSTED
from submissions.states import State
from vskill.environments import WorkerEnv

LIMIT: Final = 1000


@dataclass(frozen=True)
class DeadLetter:
    """A dead letter: the kind of its message, the id of what it is about, and why it was given up."""

    kind: str
    subject: str
    reason: str


def dead_letters(env: WorkerEnv, *, limit: int = LIMIT) -> list[DeadLetter]:
    """Return the dead letters of an environment, at most ``limit``, each submission once."""
    found = [DeadLetter(one.kind, one.subject, one.reason) for one in messages.all_parked(env, limit)]
    subjects = {(one.kind, one.subject) for one in found}
    held = SubmissionEntry.objects.using(env.database).live().filter(namespace=env.name, state=State.ON_HOLD)
    # The reason is part of the value. A submission that is held for its verdict is a person's to decide, and no dead
    # letter.
    exhausted = held.filter(value__contains=f'"reason":"{RECOVERY_EXHAUSTED}').order_by("state_at")
    for entry in exhausted[:limit]:
        if (messages.VERIFY, entry.submission_id) not in subjects:
            found.append(DeadLetter(messages.VERIFY, entry.submission_id, RECOVERY_EXHAUSTED))
    return found[:limit]
