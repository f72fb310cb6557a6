"""Find the submissions whose worker is gone and put them back, or hand them to a person.

A submission whose message waits or is leased is on its way: the queue brings it back by itself. What is left has no
message that anybody will receive. Each is moved by one transaction that reads it again, so that two sweeps, or a
sweep and a worker that wakes up late, move it once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, transaction

from submissions.models import QueueMessage
from submissions.pipeline import VERIFY
from submissions.queue.database import get_queue
from submissions.states import STUCK_STATES, State
from submissions.store import (
    StuckReport,
    StuckSubmission,
    get_stuck_submissions,
    read_submission,
    repeat,
    transition,
)
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.errors import VersionConflict
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import ReadCounts
from vskill.kv.threads import writers

logger = logging.getLogger(__name__)

ACTOR: Final = "recovery"
LOCK_KEY: Final = "lock:recover_stuck"
LOCK_TTL: Final = timedelta(seconds=30)
RECOVERIES_KEPT: Final = timedelta(hours=24)
RECOVERY_EXHAUSTED: Final = "recovery_exhausted"


class RecoveryRunning(VskillError):
    """Another sweep of the same environment holds the lock."""

    code = "recovery_running"


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
    """What one sweep saw and did; ``results`` pairs each stuck submission with its result and the reason."""

    environment: str
    counts: ReadCounts = field(default_factory=ReadCounts)
    unreadable: tuple[str, ...] = ()
    results: list[tuple[StuckSubmission, Result, str]] = field(default_factory=list)
    left: int = 0

    def count(self, *results: Result) -> int:
        """Return how many submissions ended with one of ``results``."""
        return sum(result in results for _stuck, result, _reason in self.results)

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


def _attempts(namespace: KVNamespace, submission_id: str) -> int:
    outcome = namespace.get_sync(f"recovery:{submission_id}")
    if outcome.absent:
        return 0
    value = outcome.value
    attempts = value.get("attempts") if isinstance(value, dict) else None
    # A count that cannot be read is taken as used up: a person looks, and nothing is tried for ever.
    return attempts if isinstance(attempts, int) else int(settings.RECOVERY_MAX_ATTEMPTS)


def recover_one(env: WorkerEnv, stuck: StuckSubmission, *, dry_run: bool = False) -> Result:
    """Move one stuck submission: back into the queue, or to ON_HOLD after its last recovery.

    Everything is read again and written in one transaction on the calling thread. ``MOVED`` and ``ON_ITS_WAY`` mean
    that nothing had to be done.
    """
    with transaction.atomic(using=env.database):
        submission = read_submission(env, stuck.id)
        if submission.version != stuck.version:
            return Result.MOVED
        messages = QueueMessage.objects.using(env.database).filter(environment=env.name, kind=VERIFY, subject=stuck.id)
        if messages.filter(parked_at__isnull=True).exists():
            return Result.ON_ITS_WAY
        kv = KVNamespace(KVEntry, env)
        attempts = _attempts(kv, stuck.id)
        if attempts >= settings.RECOVERY_MAX_ATTEMPTS:
            if not dry_run:
                reason = f"{RECOVERY_EXHAUSTED}: it stopped moving {attempts} times; an operator must look at it"
                transition(env, submission, State.ON_HOLD, reason=reason, actor=ACTOR, trigger="recover_stuck")
            return Result.WOULD_HOLD if dry_run else Result.HELD
        if dry_run:
            return Result.WOULD_RECOVER
        minutes = stuck.stuck_for / timedelta(minutes=1)
        reason = f"put back by recovery {attempts + 1} of {settings.RECOVERY_MAX_ATTEMPTS}, after {minutes:.1f} minutes"
        if submission.state in (State.TIER1_SCANNING, State.TIER2_SCANNING):
            transition(env, submission, State.RECEIVED, reason=reason, actor=ACTOR, trigger="recover_stuck")
        else:
            repeat(env, submission, reason=reason, actor=ACTOR, trigger="recover_stuck")
        kv.put_sync(f"recovery:{stuck.id}", {"attempts": attempts + 1}, ttl=RECOVERIES_KEPT)
        messages.delete()
        get_queue(env).send(env.name, VERIFY, stuck.id)
        return Result.RECOVERED


@asynccontextmanager
async def _lock(env: WorkerEnv) -> AsyncIterator[None]:
    """Hold the sweep's lock: an entry that expires soon after its holder dies and is renewed while it lives."""
    namespace = KVNamespace(KVEntry, env)
    holder = {"holder": f"{socket.gethostname()}:{os.getpid()}"}
    try:
        version = await namespace.put(LOCK_KEY, holder, ttl=LOCK_TTL, expect_version=0)
    except VersionConflict:
        raise RecoveryRunning(
            f"Another recovery of {env.name!r} is running. Nothing was done; its lock ends by itself if it has died."
        ) from None

    async def renew() -> None:
        nonlocal version
        while True:
            await asyncio.sleep(LOCK_TTL.total_seconds() / 3)
            version = await namespace.put(LOCK_KEY, holder, ttl=LOCK_TTL, expect_version=version)

    renewing = asyncio.create_task(renew())
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.wait([renewing])
        # A lock that somebody else took after ours ran out is theirs; what we did was guarded by each entry's version.
        with contextlib.suppress(VersionConflict):
            await namespace.delete(LOCK_KEY, expect_version=version)


async def recover_stuck(
    env: WorkerEnv,
    *,
    older_than: timedelta | None = None,
    states: frozenset[State] = STUCK_STATES,
    using: str = "index",
    limit: int | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> RecoveryReport:
    """Sweep one environment and return what was done.

    ``limit`` is how many submissions to move at the most; the rest is counted as ``left``. ``progress`` is called
    with how many are done and how many there are. Raises ``RecoveryRunning`` where another sweep holds the lock; a
    dry run needs none.
    """
    threshold = older_than if older_than is not None else timedelta(seconds=settings.STUCK_THRESHOLD_SECONDS)
    if dry_run:
        return await _sweep(env, threshold, states, using, limit, dry_run, progress)
    async with _lock(env):
        return await _sweep(env, threshold, states, using, limit, dry_run, progress)


async def _sweep(
    env: WorkerEnv,
    older_than: timedelta,
    states: frozenset[State],
    using: str,
    limit: int | None,
    dry_run: bool,
    progress: Callable[[int, int], None],
) -> RecoveryReport:
    found: StuckReport = await get_stuck_submissions(env, older_than=older_than, states=states, using=using)
    report = RecoveryReport(env.name, found.counts, found.unreadable)
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
