"""The queue messages of submissions: the one place outside ``queue/`` that knows how they are stored.

A submission that is on its way has one message of the kind ``VERIFY``, whose subject is the submission's id. A parked
message is a dead letter: it stays beside a new one until it is forgotten.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from django.db import connections
from django.db.models import Case, Exists, F, Func, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Collate, Concat, Now, Substr

from marketplace.skills.publishers import owned_by, publisher_identity
from submissions.models import SUBMISSION_PREFIX, QueueMessage, SubmissionEntry
from submissions.queue.database import get_queue
from submissions.states import ACTIVE_STATES
from vskill.environments import WorkerEnv

VERIFY: Final = "verify_submission"
SUBMIT_JOB: Final = "submit_job"
RESCAN: Final = "rescan_version"
# They take turns as one publisher, with the least weight that there is.
_RESCANS: Final = "rescan"
_RESCAN_WEIGHT: Final = 0.01
# Of a job before the many submissions that it makes, and of one that is being stopped before they are checked.
_JOB_PRIORITY: Final = 20
_TAKEN_OVER_AFTER: Final = timedelta(minutes=2)


@dataclass(frozen=True)
class ParkedMessage:
    """A dead letter: its kind, the id of what it is about, and why it was parked."""

    kind: str
    subject: str
    reason: str


@dataclass(frozen=True)
class OrphanMessage:
    """A message about a submission that does not exist; ``id`` is the row's number."""

    id: int
    subject: str


def _messages(env: WorkerEnv, kind: str = VERIFY) -> QuerySet[QueueMessage]:
    return QueueMessage.objects.using(env.database).filter(environment=env.name, kind=kind)


def _about(env: WorkerEnv, submission_id: str, kind: str = VERIFY) -> QuerySet[QueueMessage]:
    return _messages(env, kind).filter(subject=submission_id)


def send(env: WorkerEnv, submission_id: str, *, priority: int = 0, restart: bool = False) -> bool:
    """Queue a submission within the caller's transaction, and return whether its message is new or was reset.

    The publisher of its repository takes turns with the others of ``env``. ``priority`` and ``restart`` are those of
    ``Queue.send``.
    """
    entries = SubmissionEntry.objects.using(env.database).filter(namespace=env.name)
    repo_url = (
        entries.filter(key=f"{SUBMISSION_PREFIX}{submission_id}").values_list("repo_url", flat=True).first() or ""
    )
    weights = (weight for owner, weight in env.policy.queue_weights if owned_by(repo_url, [owner]))
    return get_queue(env).send(
        env.name,
        VERIFY,
        submission_id,
        publisher=publisher_identity(repo_url),
        weight=next(weights, 1.0),
        priority=priority,
        restart=restart,
    )


def send_job(env: WorkerEnv, job_id: str, *, later: bool = False, restart: bool = False) -> bool:
    """Queue a job within the caller's transaction, and return whether its message is new or was reset.

    With ``later`` it is not received for two minutes. ``restart`` is that of ``Queue.send``.
    """
    delay = _TAKEN_OVER_AFTER if later else timedelta()
    return get_queue(env).send(env.name, SUBMIT_JOB, job_id, priority=_JOB_PRIORITY, delay=delay, restart=restart)


def send_rescan(env: WorkerEnv, version_id: int, *, priority: int = 0) -> bool:
    """Queue a published version to be scanned again within the caller's transaction; return whether that is new.

    All of them share the turns of one publisher of the lowest weight. ``priority`` is that of ``Queue.send``.
    """
    queue, subject = get_queue(env), str(version_id)
    return queue.send(env.name, RESCAN, subject, publisher=_RESCANS, weight=_RESCAN_WEIGHT, priority=priority)


def waiting_rescans(env: WorkerEnv) -> set[int]:
    """Return the numbers of the versions that wait to be scanned again or are being scanned, without those delayed."""
    waiting = QueueMessage.objects.using(env.database).filter(
        environment=env.name, publisher=_RESCANS, parked_at__isnull=True, turn__isnull=False
    )
    return {int(subject) for subject in waiting.values_list("subject", flat=True) if subject.isdigit()}


def rescan_is_queued(env: WorkerEnv, version_id: int) -> bool:
    """Return whether a published version waits to be scanned again, is delayed or is being scanned."""
    return _about(env, str(version_id), RESCAN).filter(parked_at__isnull=True).exists()


class Standing(StrEnum):
    """Where a message stands: it waits, is being worked on, was given up, or there is none."""

    WAITING = "waiting"
    LEASED = "leased"
    PARKED = "parked"
    NONE = "none"


def rescan_standing(env: WorkerEnv, version_id: int) -> Standing:
    """Return where the newest message to scan a published version again stands."""
    leased = Case(When(leased_until__gt=Now(), then=Value(value=True)), default=Value(value=False))
    about = _about(env, str(version_id), RESCAN).annotate(is_leased=leased)
    newest = about.order_by(F("parked_at").desc(nulls_first=True)).values_list("parked_at", "is_leased").first()
    if newest is None:
        return Standing.NONE
    if newest[0] is not None:
        return Standing.PARKED
    return Standing.LEASED if newest[1] else Standing.WAITING


def count_leased(env: WorkerEnv) -> int:
    """Return how many messages of an environment are being worked on."""
    return QueueMessage.objects.using(env.database).filter(environment=env.name, leased_until__gt=Now()).count()


def is_queued(env: WorkerEnv, submission_id: str) -> bool:
    """Return whether a submission has a message that waits, is delayed or is leased."""
    return _about(env, submission_id).filter(parked_at__isnull=True).exists()


def queued_among(env: WorkerEnv, submission_ids: Collection[str]) -> set[str]:
    """Return those of a few hundred submissions for which ``is_queued`` holds."""
    waiting = _messages(env).filter(parked_at__isnull=True, subject__in=submission_ids)
    return set(waiting.values_list("subject", flat=True))


def on_its_way(env: WorkerEnv) -> Exists:
    """Return the condition, for a query of submissions, that ``is_queued`` holds; an index answers it for each row."""
    about: Func = Substr(OuterRef("key"), len(SUBMISSION_PREFIX) + 1)
    if connections[env.database].vendor == "postgresql":
        # Keys have the collation C, and an index serves only comparisons by its own.
        about = Collate(about, "default")
    return Exists(_messages(env).filter(parked_at__isnull=True, subject=about))


def parked_reason(env: WorkerEnv, submission_id: str) -> str | None:
    """Return why the newest dead letter of a submission was parked, or ``None`` where it has none."""
    parked = _about(env, submission_id).filter(parked_at__isnull=False).order_by("-parked_at")
    return parked.values_list("last_error", flat=True).first()


def forget_parked(env: WorkerEnv, submission_id: str) -> None:
    """Delete the dead letters of a submission."""
    _about(env, submission_id).filter(parked_at__isnull=False).delete()


def all_parked(env: WorkerEnv, limit: int) -> list[ParkedMessage]:
    """Return the dead letters of every kind, the oldest first, at most ``limit``."""
    parked = QueueMessage.objects.using(env.database).filter(environment=env.name, parked_at__isnull=False)
    rows = parked.order_by("parked_at", "id").values_list("kind", "subject", "last_error")[:limit]
    return [ParkedMessage(*row) for row in rows]


def unpark(env: WorkerEnv, kind: str, subject: str) -> bool:
    """Make the newest dead letter of a kind and subject available again, its counters reset.

    False where there is none, or where a message of that kind and subject is queued already.
    """
    messages = _about(env, subject, kind)
    if messages.filter(parked_at__isnull=True).exists():
        return False
    newest = list(messages.order_by("-parked_at").values_list("pk", flat=True)[:1])
    reset = {"parked_at": None, "errors": 0, "crashes": 0, "available_at": Now(), "due_at": Now(), "turn": None}
    return bool(messages.filter(pk__in=newest).update(**reset))


def _without_submission(env: WorkerEnv) -> QuerySet[QueueMessage]:
    # One statement, so that a message and its submission are seen at the same moment.
    entries = SubmissionEntry.objects.using(env.database).filter(namespace=env.name)
    return _messages(env).filter(~Exists(entries.filter(key=Concat(Value(SUBMISSION_PREFIX), OuterRef("subject")))))


def orphans(env: WorkerEnv) -> list[OrphanMessage]:
    """Return the messages about submissions that do not exist, oldest first."""
    rows = _without_submission(env).order_by("id").values_list("pk", "subject")
    return [OrphanMessage(pk, subject) for pk, subject in rows]


def delete_orphan(env: WorkerEnv, orphan_id: int) -> None:
    """Delete an orphan by its number, unless its submission exists by now."""
    _without_submission(env).filter(pk=orphan_id).delete()


def without_message(env: WorkerEnv) -> list[SubmissionEntry]:
    """Return the submissions in an active state that have no message, those that moved longest ago first."""
    entries = SubmissionEntry.objects.using(env.database).filter(namespace=env.name)
    return list(entries.live().filter(~on_its_way(env), state__in=sorted(ACTIVE_STATES)).order_by("state_at"))


def count_ahead(env: WorkerEnv, submission_id: str) -> int | None:
    """Return how many messages that wait now go before a submission's, or ``None`` where it does not wait.

    More may come before it later: publishers take turns, and one that joins has its first turn in the present round.
    """
    waiting = QueueMessage.objects.using(env.database).filter(
        Q(leased_until__isnull=True) | Q(leased_until__lte=Now()), environment=env.name, parked_at__isnull=True
    )
    own = waiting.filter(subject=submission_id).first()
    if own is None:
        return None
    # Compared inside the database: SQLite's clock writes milliseconds, and Django would pass the same time with
    # microseconds, which is a different text.
    due_at = Subquery(QueueMessage.objects.using(env.database).filter(pk=own.pk).values("due_at"))
    earlier = Q(due_at__lt=due_at) | Q(due_at=due_at, id__lt=own.pk)
    if own.turn is None:
        # Its delay has not ended, or nobody has looked since; it then goes behind those that have a turn.
        return waiting.filter(Q(turn__isnull=False) | earlier).count()
    return waiting.filter(Q(turn__lt=own.turn) | Q(turn=own.turn) & earlier).count()
