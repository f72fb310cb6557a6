"""One request at a time to each host, with a pause after it, whatever machine asks: a lease that ends by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.processes.heartbeat import process_name

_PREFIX: Final = "lock:watch:"


async def take_turn(env: WorkerEnv, host: str, lease: timedelta) -> int | None:
    """Return the version of the lease on ``host``, or ``None`` where another process has it or it still rests.

    It ends by itself after ``lease``, by the database's clock.
    """
    namespace = KVNamespace(KVEntry, env)
    try:
        return await namespace.put(_PREFIX + host, {"holder": process_name()}, ttl=lease, expect_version=0)
    except VersionConflict:
        return None


async def rest(env: WorkerEnv, host: str, version: int, pause: timedelta) -> None:
    """Give up the lease on ``host`` and let it rest for ``pause``, before which nobody gets a turn."""
    namespace = KVNamespace(KVEntry, env)
    try:
        if pause > timedelta():
            await namespace.put(_PREFIX + host, {"holder": ""}, ttl=pause, expect_version=version)
        else:
            await namespace.delete(_PREFIX + host, expect_version=version)
    except VersionConflict:
        # It had run out, and another process has the turn.
        return
