"""One run over the repositories that are due: one after another, with a pause between two of the same host."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

from marketplace.repo_health import Health, RepoHealth, health_in, health_key
from submissions.repo_health.look import look_at
from submissions.repo_health.store import due_repositories, keep, next_health, remember
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.threads import readers, writers
from vskill.processes.run_lock import run_lock
from vskill.worker_context import require_worker_env

WORK: Final = "check_repositories"
# Seconds between two looks at one host.
PAUSE: Final = 1.0
# Of one host in one run, after which its other repositories wait for the next.
MOST_FAILURES: Final = 3


@dataclass
class CheckReport:
    """What one run did: the health of each repository that was looked at, and how many are left for the next run.

    ``lost`` counts looks whose result was not kept, because somebody else wrote at the same time. In a dry run ``due``
    has the repositories that would be looked at.
    """

    environment: str
    checked: list[RepoHealth] = field(default_factory=list)
    due: list[str] = field(default_factory=list)
    left: int = 0
    lost: int = 0

    def counts(self) -> dict[str, int]:
        """Return how many of the repositories were seen in each status."""
        found = Counter(one.status.value for one in self.checked)
        return {status.value: found[status.value] for status in Health}

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``."""
        return {
            "environment": self.environment,
            "checked": [
                {
                    "repoUrl": one.repo_url,
                    "status": one.status.value,
                    "since": isoformat(one.since),
                    "reason": one.reason,
                }
                for one in self.checked
            ],
            "due": self.due,
            "counts": self.counts(),
            "left": self.left,
            "lost": self.lost,
        }


async def check_repositories(
    *,
    limit: int,
    seconds: float,
    dry_run: bool = False,
    pause: float = PAUSE,
    progress: Callable[[int, int], object] = lambda _done, _total: None,
) -> CheckReport:
    """Look at the repositories that are due in the current environment, and keep what was seen.

    At most ``limit`` of them are looked at, and none is begun after ``seconds``. Between two of the same host it waits
    ``pause`` seconds. A host that fails is left alone for the rest of the run. ``progress`` gets the number of those
    that are done and of all; ``dry_run`` only says which are due. One run at a time in an environment, on whatever
    machine: raises ``AlreadyRunning``, ``WorkerEnvMissing`` outside a scope, and MachineFault where this machine cannot
    run git.
    """
    env = require_worker_env()
    if dry_run:
        return CheckReport(env.name, due=await readers.run(_due, env, limit))
    async with run_lock(env, WORK):
        return await _check(env, limit, seconds, pause, progress)


def _due(env: WorkerEnv, limit: int) -> list[str]:
    return due_repositories(env, database_now(env.database), most=limit)


async def _check(
    env: WorkerEnv, limit: int, seconds: float, pause: float, progress: Callable[[int, int], object]
) -> CheckReport:
    report = CheckReport(env.name)
    due = await readers.run(_due, env, limit)
    begun = monotonic()
    failures: Counter[str] = Counter()
    last_host = None
    for number, url in enumerate(due):
        host = urlsplit(url).netloc
        if monotonic() - begun >= seconds:
            report.left += len(due) - number
            break
        if failures[host] >= MOST_FAILURES:
            report.left += 1
            continue
        if host == last_host:
            await asyncio.sleep(pause)
        last_host = host
        failures[host] += await _check_one(env, url, report)
        progress(number + 1, len(due))
        await writers.run(remember, env, url)
    return report


async def _check_one(env: WorkerEnv, url: str, report: CheckReport) -> int:
    """Look at one repository and keep what was seen; return 1 where its host failed."""
    # Read before the look, so that a look which ends late never overwrites a later one.
    outcome = await KVNamespace(KVEntry, env).get(health_key(url))
    seen = await look_at(env, url)
    now = await readers.run(database_now, env.database)
    health = next_health(url, health_in(outcome), seen, now)
    if await keep(env, outcome, health):
        report.checked.append(health)
    else:
        report.lost += 1
    return int(seen.host_fails)
