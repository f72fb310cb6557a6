"""Send what has to be scanned again to the queue: so many an hour, and never more than a few that wait.

A run chooses, sends and writes down where it stopped in one transaction, so a kill leaves it done or not begun. The
messages take turns like those of a publisher of the lowest weight: one in a hundred rounds while others wait.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from marketplace.catalog import find_skill_sync
from marketplace.errors import SkillNotFound
from marketplace.models import SkillVersion
from submissions import messages
from submissions.rescan.choice import Walks, choose, left_to_scan
from submissions.verification.scan_keys import current_key, engines_of
from submissions.waivers.store import end_lapsed, lapsed_count
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat, parse_isoformat
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.threads import readers, writers
from vskill.processes.run_lock import run_lock

WORK: Final = "rescan"
STATE_KEY: Final = "rescan:state"
# Messages that wait at most, so that a consumer which is down is not followed by a flood.
MOST_WAITING: Final = 60
_HOUR: Final = 3600.0


@dataclass(frozen=True)
class Progress:
    """How far the scans are: all published versions, those with the current key, and those that wait in the queue.

    ``sent`` are the numbers of the versions that this run sent, or would send. ``allowed`` is how many more the policy
    permits now. ``lapsed`` waivers were ended by this run, or would be.
    """

    environment: str
    key: str
    total: int
    scanned: int
    waiting: int
    sent: tuple[int, ...] = ()
    allowed: int = 0
    lapsed: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json.dumps``."""
        return {
            "environment": self.environment,
            "key": self.key,
            "total": self.total,
            "scanned": self.scanned,
            "left": self.total - self.scanned,
            "waiting": self.waiting,
            "sent": len(self.sent),
            "lapsedWaivers": self.lapsed,
            "allowed": self.allowed,
        }


@dataclass(frozen=True)
class _State:
    """What is kept between runs: the key that is being worked towards, the walks, and how many may be sent at a time.

    ``tokens`` is how many more may be sent, as of ``at``.
    """

    key: str
    walks: Walks
    tokens: float
    at: datetime

    def to_value(self) -> dict[str, Any]:
        return {"key": self.key, "walks": self.walks.to_value(), "tokens": self.tokens, "at": isoformat(self.at)}


async def feed(env: WorkerEnv, *, limit: int | None = None, dry_run: bool = False) -> Progress:
    """Send the next versions of an environment that have to be scanned again, and return how far it is.

    At most ``limit`` are sent, and no more than the policy permits; with ``dry_run`` it is only said which. One run at
    a time: raises ``AlreadyRunning``, and EngineUnavailable where an engine of the policy is not installed.
    """
    if dry_run:
        return await readers.run(_feed, env, limit, True)
    async with run_lock(env, WORK):
        return await writers.run(_feed, env, limit, False)


def _feed(env: WorkerEnv, limit: int | None, dry_run: bool) -> Progress:
    # First, so that what it sends counts among what waits.
    lapsed = lapsed_count(env) if dry_run else len(end_lapsed(env))
    key = current_key(engines_of(env))
    namespace = KVNamespace(KVEntry, env)
    outcome = namespace.get_sync(STATE_KEY)
    now = database_now(env.database)
    state = _refilled(env, _state(outcome.value if outcome.found else None, key, now), now)
    waiting = messages.waiting_rescans(env)
    allowed = max(0, min(int(state.tokens), MOST_WAITING - len(waiting)))
    wanted = allowed if limit is None else min(limit, allowed)
    chosen: list[int] = []
    if wanted and left_to_scan(env, key).exists():
        # After an end, what failed or was published by an earlier release meanwhile is met by new walks.
        walks = Walks() if state.walks.ended and not waiting else state.walks
        chosen, walks = choose(env, key, walks, wanted, without=waiting)
        state = replace(state, walks=walks)
    if dry_run:
        return replace(progress(env, key), sent=tuple(chosen), allowed=allowed, lapsed=lapsed)
    # Nobody waits for the rows that were read above.
    with transaction.atomic(using=env.database):
        sent = [number for number in chosen if messages.send_rescan(env, number)]
        state = replace(state, tokens=state.tokens - len(sent))
        namespace.put_sync(STATE_KEY, state.to_value(), expect_version=outcome.version)
    return replace(progress(env, key), sent=tuple(sent), allowed=allowed - len(sent), lapsed=lapsed)


def _state(value: Any, key: str, now: datetime) -> _State:
    stored = value if isinstance(value, dict) else {}
    walks = Walks.from_value(stored.get("walks")) if stored.get("key") == key else Walks()
    tokens = stored.get("tokens")
    at = parse_isoformat(stored.get("at"))
    # A new key begins with new walks, and with what was left of the hour.
    if isinstance(tokens, (int, float)) and at is not None:
        return _State(key, walks, float(tokens), at)
    return _State(key, walks, float("inf"), now)


def _refilled(env: WorkerEnv, state: _State, now: datetime) -> _State:
    """Add what the time since the last run permits: never more than the policy says within any hour."""
    an_hour = env.policy.rescans_per_hour
    at_once = max(an_hour / 12, min(1.0, an_hour))
    rate = max(an_hour - at_once, an_hour / 2) / _HOUR
    passed = max(0.0, (now - state.at).total_seconds())
    return replace(state, tokens=min(at_once, state.tokens + passed * rate), at=now)


def send_skill(env: WorkerEnv, slug: str) -> list[int]:
    """Send the versions of one skill whose last scan has another key, and return their numbers.

    This is asked for by a person, so the pace does not count. Raises ``SkillNotFound``.
    """
    key = current_key(engines_of(env))
    skill = find_skill_sync(env, slug, every=True)
    if skill is None:
        raise SkillNotFound(f"There is no skill {slug!r} in {env.name!r}. Nothing was sent.")
    with transaction.atomic(using=env.database):
        versions = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill)
        numbers = list(versions.exclude(scan_key=key).order_by("-pk").values_list("pk", flat=True))
        return [number for number in numbers if messages.send_rescan(env, number, priority=1)]


def progress(env: WorkerEnv, key: str) -> Progress:
    """Return how far the scans with a key are; the index over keys is counted."""
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name)
    waiting = messages.waiting_rescans(env)
    return Progress(env.name, key, versions.count(), versions.filter(scan_key=key).count(), len(waiting))
