"""Keep what was seen of repositories, and find those that are due."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from marketplace.models import SkillEntry
from marketplace.repo_health import Health, RepoHealth, health_in, health_key
from marketplace.skills.publishers import UPLOADS
from marketplace.skills.visibility import visible_skills
from submissions.repo_health.look import Seen
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome, Status
from vskill.kv.reader import CHUNK_SIZE, read_chunk
from vskill.read_only_admin import prefix_range

STALE_AFTER: Final = timedelta(days=365)
RECHECK: Final = timedelta(hours=24)
RECHECK_FAILURE: Final = timedelta(seconds=300)
# Of an entry that nobody renews any more, because its skills were withdrawn.
KEPT_FOR: Final = timedelta(days=90)
CURSOR_KEY: Final = "repo-health-cursor"
_NOT_READ: Final = (Status.UNREADABLE, Status.TIMED_OUT)
# Doublings of RECHECK_FAILURE until it is longer than RECHECK.
_MOST_DOUBLINGS: Final = 9


def next_health(url: str, before: RepoHealth | None, seen: Seen, now: datetime) -> RepoHealth:
    """Return the health of the repository at ``url`` after a look at ``now`` that saw ``seen``.

    ``before`` is what was known. A commit that says it was made in the future counts as made now. A repository that is
    OFFLINE or UNKNOWN is looked at again after five minutes, then after ten, and so on up to a day.
    """
    committed = min(seen.committed_at, now) if seen.committed_at else None
    status = seen.status
    if status is Health.ONLINE and committed is not None and now - committed >= STALE_AFTER:
        status = Health.STALE
    answered = status in (Health.ONLINE, Health.STALE)
    failures = 0 if answered else (before.failures if before else 0) + 1
    wait = RECHECK if answered else min(RECHECK, RECHECK_FAILURE * 2 ** min(failures - 1, _MOST_DOUBLINGS))
    return RepoHealth(
        repo_url=url,
        status=status,
        since=before.since if before and before.status is status else now,
        checked_at=now,
        due_at=now + wait,
        last_commit_at=committed if answered else before.last_commit_at if before else None,
        commit_sha=seen.commit_sha if answered else before.commit_sha if before else "",
        seen_at=now if answered else before.seen_at if before else None,
        reason=seen.reason,
        failures=failures,
    )


async def keep(env: WorkerEnv, outcome: Outcome, health: RepoHealth) -> bool:
    """Write ``health`` over the entry that was read as ``outcome``, and return whether it was written.

    It is not where somebody else wrote meanwhile, and where the entry could not be read. One that is damaged is
    replaced.
    """
    if outcome.status in _NOT_READ:
        return False
    try:
        await KVNamespace(KVEntry, env).put(
            health_key(health.repo_url), health.to_value(), ttl=KEPT_FOR, expect_version=outcome.version
        )
    except VersionConflict:
        return False
    return True


def due_repositories(env: WorkerEnv, now: datetime, *, most: int) -> list[str]:
    """Return at most ``most`` repositories of visible skills that are due, beginning behind the one of ``remember``.

    Behind the last one it goes on with the first, so that each repository gets its turn.
    """
    held = KVNamespace(KVEntry, env).get_sync(CURSOR_KEY)
    start = held.value if held.found and isinstance(held.value, str) else ""
    due: list[str] = []
    for urls in _from(env, start):
        keys = [health_key(url) for url in urls]
        outcomes = read_chunk(KVEntry, env.database, env.name, keys)
        for url, key in zip(urls, keys, strict=True):
            health = health_in(outcomes[key])
            if outcomes[key].status not in _NOT_READ and (health is None or health.due_at <= now):
                due.append(url)
            if len(due) == most:
                return due
    return due


def remember(env: WorkerEnv, url: str) -> None:
    """Let the next run begin behind ``url``."""
    KVNamespace(KVEntry, env).put_sync(CURSOR_KEY, url, ttl=KEPT_FOR)


def _from(env: WorkerEnv, start: str) -> Iterator[list[str]]:
    """Yield the URLs behind ``start`` in order, and then those up to it, in lists of at most ``CHUNK_SIZE``."""
    skills = visible_skills(SkillEntry.objects.using(env.database).live().filter(namespace=env.name))
    skills = skills.exclude(repo_url="").exclude(prefix_range("repo_url", UPLOADS))
    urls = skills.order_by("repo_url").values_list("repo_url", flat=True).distinct()
    after, end = start, ""
    while True:
        part = urls.filter(repo_url__gt=after)
        chunk = list((part.filter(repo_url__lte=end) if end else part)[:CHUNK_SIZE])
        if chunk:
            yield chunk
        if len(chunk) == CHUNK_SIZE:
            after = chunk[-1]
        elif not end and start:
            after, end = "", start
        else:
            return
