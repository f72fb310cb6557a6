"""Find the submissions whose worker is gone and put them back, or hand them to a person.

A submission whose message waits or is leased is on its way: the queue delivers it again by itself. A query leaves these
out, so that a sweep costs what is stuck and not what waits. The others have no message that will ever be received. Each
is moved in one transaction that reads it again, so that two sweeps, or a sweep and a worker that comes too late, move
it once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models.functions import Now

from submissions import messages
from submissions.models import RecoverySweep
from submissions.states import SWEPT_STATES, State
from submissions.store.holds import count_recoveries, hold, remember_recoveries
from submissions.store.queries import get_stuck_submissions, read_submission
from submissions.store.records import StuckReport, StuckSubmission, Submission
from submissions.store.transitions import repeat, transition
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.codec import encode
from vskill.kv.errors import VersionConflict
from vskill.kv.outcomes import ReadCounts
from vskill.kv.threads import writers
from vskill.processes.heartbeat import process_name
from vskill.processes.run_lock import run_lock

logger = logging.getLogger(__name__)

ACTOR: Final = "recovery"
TRIGGER: Final = "recover_stuck"
SWEEPS_KEPT: Final = timedelta(days=7)
SUBMISSIONS_LOGGED: Final = 100
RECOVERY_EXHAUSTED: Final = "recovery_exhausted"
GIVEN_UP_BY_QUEUE: Final = "the queue gave it up"


class Result(StrEnum):
    """What a sweep did with one stuck submission."""

    RECOVERED = "recovered"
    HELD = "held"
    ON_ITS_WAY = "on_its_way"
    MOVED = "moved"
    FAILED = "failed"
    WOULD_RECOVER = "would_recover"
    WOULD_HOLD = "would_hold"


@dataclass
class RecoveryReport:
    """What one sweep read and did.

    ``counts`` says how every read ended, ``unreadable`` are the keys of those that failed. ``results`` has each stuck
    submission with its result and, where it failed, the reason. ``left`` were not reached because of the limit.
    ``on_its_way`` are those that a query left out, because their message waits or is leased; they are not listed.
    """

    environment: str
    counts: ReadCounts = field(default_factory=ReadCounts)
    unreadable: tuple[str, ...] = ()
    results: list[tuple[StuckSubmission, Result, str]] = field(default_factory=list)
    left: int = 0
    on_its_way: int = 0

    def count(self, *results: Result) -> int:
        """Return how many submissions ended with one of ``results``, those that a query left out among them."""
        left_out = self.on_its_way if Result.ON_ITS_WAY in results else 0
        return left_out + sum(result in results for _stuck, result, _reason in self.results)

    def as_json(self) -> dict[str, Any]:
        """Return what ``recover_stuck --json`` prints for this environment."""
        return {
            "environment": self.environment,
            "read": self.counts.read,
            "missing": self.counts.missing,
            "malformed": self.counts.malformed,
            "unreadable": self.counts.unreadable + self.counts.timed_out,
            "unreadableKeys": list(self.unreadable),
            "left": self.left,
            **{result.value: self.count(result) for result in Result},
            "submissions": [
                {**stuck.as_json(), "result": result, "reason": reason} for stuck, result, reason in self.results
            ],
        }


def recover_one(env: WorkerEnv, stuck: StuckSubmission, *, dry_run: bool = False) -> Result:
    """Move one stuck submission back into the queue, or to ON_HOLD after its last recovery, and return the result.

    Everything is read again and written in one transaction on the calling thread. ``MOVED`` and ``ON_ITS_WAY`` mean
    that nothing had to be done. A submission with a dead letter is held at once: what has failed so often is not tried
    again without a person. Raises ``VersionConflict`` where somebody else moves it meanwhile.
    """
    with transaction.atomic(using=env.database):
        submission = read_submission(env, stuck.id)
        if submission.version != stuck.version:
            return Result.MOVED
        if messages.is_queued(env, stuck.id):
            return Result.ON_ITS_WAY
        recoveries = count_recoveries(env, stuck.id)
        given_up = _given_up(messages.parked_reason(env, stuck.id), recoveries)
        if dry_run:
            return Result.WOULD_HOLD if given_up else Result.WOULD_RECOVER
        if given_up:
            hold(env, submission, reason=given_up, actor=ACTOR, trigger=TRIGGER)
            return Result.HELD
        minutes = stuck.stuck_for / timedelta(minutes=1)
        number = f"{recoveries + 1} of {settings.RECOVERY_MAX_ATTEMPTS}"
        reason = f"put back by recovery {number}, after {minutes:.1f} minutes"
        put_back(env, submission, reason=reason, actor=ACTOR, trigger=TRIGGER)
        remember_recoveries(env, stuck.id, recoveries + 1)
        return Result.RECOVERED


def _given_up(parked_reason: str | None, recoveries: int) -> str:
    """Return why a submission is not put back any more, empty where it is."""
    if parked_reason is not None:
        return f"{GIVEN_UP_BY_QUEUE}: {parked_reason}"
    if recoveries >= settings.RECOVERY_MAX_ATTEMPTS:
        return f"{RECOVERY_EXHAUSTED}: it stopped moving {recoveries} times; an operator must look at it"
    return ""


def put_back(env: WorkerEnv, submission: Submission, *, reason: str, actor: str, trigger: str) -> None:
    """Queue a submission that has lost its message, within the caller's transaction.

    One that was being scanned is scanned from the start; one that is approved is published with the scan that it has.
    ``reason``, ``actor`` and ``trigger`` go into its history. Raises ``VersionConflict`` where somebody else moved it.
    """
    if submission.state in (State.TIER1_SCANNING, State.TIER2_SCANNING):
        transition(env, submission, State.RECEIVED, reason=reason, actor=actor, trigger=trigger)
    else:
        repeat(env, submission, reason=reason, actor=actor, trigger=trigger)
    messages.send(env, submission.id)


async def recover_stuck(
    env: WorkerEnv,
    *,
    older_than: timedelta | None = None,
    states: frozenset[State] = SWEPT_STATES,
    using: str = "index",
    limit: int | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> RecoveryReport:
    """Sweep one environment, and return what was done.

    A submission is stuck when it has stayed in one of ``states`` for ``older_than`` (default: the setting) or longer.
    ``using`` is how they are found: see ``get_stuck_submissions``. At most ``limit`` are moved; the others count as
    ``left``. A ``dry_run`` writes nothing and takes no lock. ``progress`` is called with how many are done and how many
    there are. Raises ``AlreadyRunning`` where another sweep holds the lock.
    """
    threshold = older_than if older_than is not None else timedelta(seconds=settings.STUCK_THRESHOLD_SECONDS)
    if dry_run:
        return await _sweep(env, threshold, states, using, limit, dry_run, progress)
    async with run_lock(env, "recover_stuck"):
        log = await writers.run(begin_sweep, env)
        report = await _sweep(env, threshold, states, using, limit, dry_run, progress)
        await writers.run(end_sweep, env, log, report)
        return report


def begin_sweep(env: WorkerEnv) -> int:
    """Record that a sweep has begun, delete records older than ``SWEEPS_KEPT``, and return the number of the record."""
    sweeps = RecoverySweep.objects.using(env.database)
    sweeps.filter(environment=env.name, started_at__lt=Now() - SWEEPS_KEPT).delete()
    begun: RecoverySweep = sweeps.create(environment=env.name, holder=process_name()[:100])
    return begun.pk


def end_sweep(env: WorkerEnv, pk: int, report: RecoveryReport) -> None:
    """Record what the sweep with the number ``pk`` read and did."""
    document = report.as_json()
    kept = {**document, "submissions": document["submissions"][:SUBMISSIONS_LOGGED]}
    RecoverySweep.objects.using(env.database).filter(pk=pk).update(
        ended_at=Now(),
        read=report.counts.read,
        failed_reads=report.counts.failed,
        recovered=report.count(Result.RECOVERED),
        held=report.count(Result.HELD),
        failed=report.count(Result.FAILED),
        left=report.left,
        details=encode(kept),
    )


async def _sweep(
    env: WorkerEnv,
    older_than: timedelta,
    states: frozenset[State],
    using: str,
    limit: int | None,
    dry_run: bool,
    progress: Callable[[int, int], None],
) -> RecoveryReport:
    found: StuckReport = await get_stuck_submissions(env, older_than=older_than, states=states, using=using, idle=True)
    report = RecoveryReport(env.name, found.counts, found.unreadable, on_its_way=found.on_its_way)
    acted = (Result.RECOVERED, Result.HELD, Result.WOULD_RECOVER, Result.WOULD_HOLD)
    for done, stuck in enumerate(found.stuck):
        if limit is not None and report.count(*acted) >= limit:
            report.left = len(found.stuck) - done
            break
        try:
            result, reason = await writers.run(recover_one, env, stuck, dry_run=dry_run), ""
        except VersionConflict:
            result, reason = Result.MOVED, ""
        except (DatabaseError, VskillError) as error:
            result, reason = Result.FAILED, str(error)
            logger.error("submission %s was not recovered and stays for the next sweep: %s", stuck.id, error)
        report.results.append((stuck, result, reason))
        progress(done + 1, len(found.stuck))
    return report
