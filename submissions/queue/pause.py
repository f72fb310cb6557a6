"""A pause of one environment's queue: who, why, until when. It is an entry that expires, so it always ends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.clock import database_now, isoformat, parse_isoformat
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import Outcome

PAUSE_KEY: Final = "queue:paused"
DEFAULT_PAUSE: Final = timedelta(hours=1)
LONGEST_PAUSE: Final = timedelta(hours=24)


class PauseTooLong(VskillError):
    """A pause is asked for that is longer than a day, or no time at all."""

    code = "pause_too_long"


@dataclass(frozen=True)
class Pause:
    """A pause that is in force."""

    who: str
    why: str
    until: datetime | None


def _pause(outcome: Outcome) -> Pause | None:
    # An entry that cannot be read still means that somebody paused the queue; to go on would be the wrong guess.
    if outcome.absent:
        return None
    value = outcome.value if isinstance(outcome.value, dict) else {}
    return Pause(str(value.get("who", "")), str(value.get("why", "")), parse_isoformat(value.get("until")))


async def get_pause(env: WorkerEnv) -> Pause | None:
    """Return the pause of the queue of ``env``, or ``None`` while it runs."""
    return _pause(await KVNamespace(KVEntry, env).get(PAUSE_KEY))


def get_pause_sync(env: WorkerEnv) -> Pause | None:
    """Return the pause of the queue of ``env``, or ``None`` while it runs, read on the calling thread."""
    return _pause(KVNamespace(KVEntry, env).get_sync(PAUSE_KEY))


def pause(env: WorkerEnv, *, who: str, why: str, duration: timedelta = DEFAULT_PAUSE) -> Pause:
    """Pause the queue of ``env`` for ``duration``, and return the pause; a second call replaces the first.

    ``who`` and ``why`` are shown to everybody who sees the queue. Raises ``PauseTooLong`` for more than a day, and for
    no time at all.
    """
    if not timedelta() < duration <= LONGEST_PAUSE:
        raise PauseTooLong("A pause lasts more than no time and at most 24 hours. Nothing was changed.")
    until = database_now(env.database) + duration
    value = {"who": who, "why": why, "until": isoformat(until)}
    KVNamespace(KVEntry, env).put_sync(PAUSE_KEY, value, expires_at=until)
    return Pause(who, why, until)


def resume(env: WorkerEnv) -> bool:
    """End the pause of ``env`` and return whether there was one."""
    return KVNamespace(KVEntry, env).delete_sync(PAUSE_KEY)
