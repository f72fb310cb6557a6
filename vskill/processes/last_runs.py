"""When a recurring command ran last, whether its processes live on or each run is one of cron."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings

from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now, isoformat, parse_isoformat
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace

# A run may take long, and cron may be late.
_RUNS_MISSED: Final = 3


@dataclass(frozen=True)
class LastRun:
    """The last run of a command in an environment: when it ended (None: never), and what it said of itself.

    ``overdue`` says that three runs of the schedule have passed without one that ended.
    """

    ended_at: datetime | None
    overdue: bool
    said: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return what /healthz tells."""
        return {"endedAt": isoformat(self.ended_at) if self.ended_at else None, "overdue": self.overdue}


def run_key(command: str) -> str:
    """Return the key of the entry that says when a command ran last."""
    return f"last-run:{command}"


async def note_run(env: WorkerEnv, command: str, said: Mapping[str, Any], *, ended_at: datetime) -> None:
    """Keep that a run of ``command`` ended, and what it ``said`` of itself; the last one that writes is kept."""
    await KVNamespace(KVEntry, env).put(run_key(command), {**said, "endedAt": isoformat(ended_at)})


def last_run(env: WorkerEnv, command: str) -> LastRun:
    """Return the last run of a ``command`` of the schedule."""
    outcome = KVNamespace(KVEntry, env).get_sync(run_key(command))
    said = outcome.value if outcome.found and isinstance(outcome.value, dict) else {}
    ended_at = parse_isoformat(said.get("endedAt"))
    longest = timedelta(seconds=_RUNS_MISSED * settings.VSKILL_SCHEDULE[command])
    overdue = ended_at is None or database_now(env.database) - ended_at > longest
    return LastRun(ended_at, overdue, said)


def last_runs(env: WorkerEnv, commands: Iterable[str]) -> dict[str, LastRun]:
    """Return the last run of each of some commands."""
    return {command: last_run(env, command) for command in commands}
