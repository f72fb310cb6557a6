"""One run over the followed repositories that are due: look at each, and submit what is new."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from django.db import transaction

from marketplace.following import Followed, FollowState, follow_key, follow_namespace, followed_in
from marketplace.skills.blocklist import is_blocked
from submissions.following.changes import in_order
from submissions.following.look import look
from submissions.following.pace import LONGEST_WAIT, RECHECK_WAITING, after_failures, allowance, interval, spread
from submissions.following.store import Event, count_followed, due_followed, write_seen
from submissions.following.submit import Submitted, start_following_job, still_wait, submit_commit
from submissions.source.errors import SourceError
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat, parse_isoformat
from vskill.kv.outcomes import Outcome
from vskill.kv.threads import readers, writers
from vskill.processes.heartbeat import process_name
from vskill.processes.last_runs import last_run, note_run
from vskill.processes.run_lock import run_lock
from vskill.worker_context import require_worker_env

WORK: Final = "poll_followed"
_HOSTS_AT_ONCE: Final = 4
# Seconds between two repositories of one host.
PAUSE: Final = 0.5
# Of one host in one run, after which its other repositories wait for the next.
_MOST_FAILURES: Final = 3


@dataclass
class PollReport:
    """What a run did: ``due`` repositories, of which some were ``looked`` at, ``failed``, or were ``left``.

    ``waiting`` counts those whose commit waits for a submission that is on its way, ``submitted`` the new submissions,
    and ``repositories`` names those that are due in a dry run, else each with what became of it. ``lost`` counts those
    that somebody else changed meanwhile.
    """

    environment: str
    followed: int = 0
    due: int = 0
    looked: int = 0
    failed: int = 0
    waiting: int = 0
    submitted: int = 0
    left: int = 0
    lost: int = 0
    repositories: list[list[str]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``."""
        return asdict(self)


async def poll_followed(
    *,
    limit: int | None = None,
    seconds: float = 20.0,
    pause: float = PAUSE,
    dry_run: bool = False,
    progress: Callable[[int, int], object] = lambda _done, _total: None,
) -> PollReport:
    """Look at the followed repositories of the current environment that are due, and submit what is new.

    At most ``limit`` are looked at, by default so many that all runs together take 0.4 a second, and none is begun
    after ``seconds``. Between two of the same host it waits ``pause`` seconds, and a host that fails thrice is left
    alone. ``progress`` gets the number of those that are done and of all; ``dry_run`` only says which are due. One run
    at a time, on whatever machine: raises ``AlreadyRunning``, ``WorkerEnvMissing`` outside a scope, and MachineFault.
    """
    env = require_worker_env()
    if dry_run:
        due = await readers.run(due_followed, env, limit or 1000)
        followed = await readers.run(count_followed, env)
        return PollReport(env.name, followed, len(due), repositories=[[url, "due"] for url in due])
    async with run_lock(env, WORK):
        started = await readers.run(database_now, env.database)
        most = limit if limit is not None else await readers.run(_allowed, env, started)
        run = _Run(env, seconds, pause, await readers.run(count_followed, env), progress)
        await run.all(await readers.run(due_followed, env, most))
        kept = {name: value for name, value in run.report.as_json().items() if name != "repositories"}
        kept |= {"startedAt": isoformat(started), "holder": process_name()}
        await note_run(env, WORK, kept, ended_at=await readers.run(database_now, env.database))
    return run.report


def _allowed(env: WorkerEnv, now: datetime) -> int:
    before = parse_isoformat(last_run(env, WORK).said.get("startedAt"))
    return allowance(None if before is None else now - before)


class _Run:
    """One run over the repositories that are due."""

    def __init__(
        self, env: WorkerEnv, seconds: float, pause: float, count: int, progress: Callable[[int, int], object]
    ) -> None:
        self.report = PollReport(env.name, count)
        self._env, self._pause, self._progress = env, pause, progress
        self._usual = interval(count)
        self._slots = asyncio.Semaphore(_HOSTS_AT_ONCE)
        self._ends_at = monotonic() + seconds
        self._done = 0

    async def all(self, urls: list[str]) -> None:
        """Look at all of them, some hosts at once."""
        self.report.due = len(urls)
        by_host: dict[str, list[str]] = {}
        for url in urls:
            by_host.setdefault(urlsplit(url).netloc, []).append(url)
        tasks = [asyncio.create_task(self._host(some)) for some in by_host.values()]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _host(self, urls: list[str]) -> None:
        failures = 0
        async with self._slots:
            for number, url in enumerate(urls):
                if number:
                    await asyncio.sleep(self._pause)
                if monotonic() >= self._ends_at or failures >= _MOST_FAILURES:
                    # They stay due.
                    self.report.left += len(urls) - number
                    return
                failures += await self._one(url)
                self._done += 1
                self._progress(self._done, self.report.due)

    async def _one(self, url: str) -> bool:
        """Look at one repository where it is still due, submit what is new, and return whether its host failed."""
        env = self._env
        outcome = await follow_namespace(env).get(follow_key(url))
        before = followed_in(outcome)
        now = await readers.run(database_now, env.database)
        if before is None or before.due_at is None or before.due_at > now:
            return False
        if (block := await readers.run(is_blocked, env, url)) is not None:
            reason = f"It is on the block list: {block.reason}"
            blocked = replace(before, state=FollowState.BLOCKED, reason=reason, left={}, waits=())
            await self._write(outcome, blocked, now + spread(LONGEST_WAIT), blocked.state)
            return False
        if before.look_at is None or before.look_at <= now:
            after, events = await look(env, before, now)
            failed = after.failures > 0
            self.report.looked += 1
            self.report.failed += failed
            wait = after_failures(after.failures, self._usual) if failed else self._usual
            written = await self._write(outcome, after, now + spread(wait), after.state, events)
            if written is None or failed:
                return failed and after.state is FollowState.UNREACHABLE
            outcome = written
        await self._submit(outcome)
        return False

    async def _write(
        self, outcome: Outcome, after: Followed, look_at: datetime, said: str, events: tuple[Event, ...] = ()
    ) -> Outcome | None:
        # What is left is submitted by this run; where it dies, another one has it at once.
        due_at = after.due_at if after.left and not after.failures else look_at
        after = replace(after, look_at=look_at, due_at=due_at)
        written = await writers.run(write_seen, self._env, outcome, after, events)
        self.report.lost += written is None
        self.report.repositories.append([after.repo_url, said])
        return written

    async def _submit(self, outcome: Outcome) -> None:
        """Submit what is left of a repository, a ref after the other, until one has to wait."""
        env = self._env
        one = followed_in(outcome)
        while one is not None and one.left:
            ref = in_order(one.left)[0]
            waits: bool = await readers.run(still_wait, env, one.waits)
            if waits:
                await self._later(outcome, one)
                return
            try:
                done = await submit_commit(env, one.repo_url, ref)
            except SourceError as error:
                self.report.failed += 1
                await self._later(outcome, replace(one, reason=f"What is new could not be read: {error}"))
                return
            self.report.submitted += len(done.picked) if done.job else done.created
            if done.waits:
                await self._later(outcome, _noted(one, ref, done, await self._now(), ended=False))
                return
            after = _noted(one, ref, done, await self._now(), ended=True)
            after = after if after.left else replace(after, due_at=after.look_at)
            written = await writers.run(_write_submitted, env, outcome, after, done)
            if written is None:
                self.report.lost += 1
                return
            outcome, one = written, followed_in(written)

    async def _later(self, outcome: Outcome, one: Followed) -> None:
        self.report.waiting += 1
        soon = await self._now() + spread(RECHECK_WAITING)
        after = replace(one, due_at=min(soon, one.look_at or soon))
        self.report.lost += await writers.run(write_seen, self._env, outcome, after) is None

    async def _now(self) -> datetime:
        return await readers.run(database_now, self._env.database)


def _write_submitted(env: WorkerEnv, outcome: Outcome, after: Followed, done: Submitted) -> Outcome | None:
    with transaction.atomic(using=env.database):
        written = write_seen(env, outcome, after)
        if written is not None:
            start_following_job(env, done)
        return written


def _noted(one: Followed, ref: str, done: Submitted, now: datetime, *, ended: bool) -> Followed:
    """Return a followed repository after a commit of ``ref`` was submitted, wholly where ``ended``."""
    left = {name: sha for name, sha in one.left.items() if name != ref} if ended else one.left
    new = bool(done.created or done.job)
    return replace(
        one,
        left=left,
        waits=() if ended else tuple(done.waits[:100]),
        commit_ref=ref if new else one.commit_ref,
        commit_sha=done.commit_sha if new else one.commit_sha,
        submitted_at=now if new else one.submitted_at,
        reason=done.problem or (one.reason if one.state is not FollowState.FOLLOWING else ""),
    )
