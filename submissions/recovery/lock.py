"""One sweep of an environment at a time: a lock that ends soon after its holder dies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.errors import VersionConflict
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.processes.heartbeat import process_name

logger = logging.getLogger(__name__)

LOCK_KEY: Final = "lock:recover_stuck"
LOCK_TTL: Final = timedelta(seconds=10)


class RecoveryRunning(VskillError):
    """Another sweep of the same environment holds the lock."""

    code = "recovery_running"


@asynccontextmanager
async def sweep_lock(env: WorkerEnv) -> AsyncIterator[None]:
    """Hold the lock of the sweeps of ``env`` during the body; raise ``RecoveryRunning`` where another sweep holds it.

    It only keeps two sweeps from doing the same work. Each submission is guarded by its own version, so that a lost
    lock does no harm. Once the lock is held, no error of it reaches the body or replaces what the body returns or
    raises.
    """
    namespace = KVNamespace(KVEntry, env)
    try:
        version = await namespace.put(LOCK_KEY, {"holder": process_name()}, ttl=LOCK_TTL, expect_version=0)
    except VersionConflict:
        raise RecoveryRunning(
            f"Another recovery of {env.name!r} is running. Nothing was done; its lock ends by itself if it has died."
        ) from None
    done = asyncio.Event()
    renewing = asyncio.create_task(_renew(namespace, version, done))
    try:
        yield
    finally:
        # Not cancelled: a renewal that is under way decides which version is ours to delete.
        done.set()
        await _give_back(namespace, renewing)


async def _give_back(namespace: KVNamespace, renewing: asyncio.Task[int]) -> None:
    try:
        # After this time the lock has ended anyway.
        async with asyncio.timeout(LOCK_TTL.total_seconds()):
            await namespace.delete(LOCK_KEY, expect_version=await renewing)
    except VersionConflict:
        logger.info("the lock of the recovery of %s is another's now", namespace.name)
    except Exception as error:  # noqa: BLE001 - the sweep is done, and its result counts
        logger.warning(
            "the lock of the recovery of %s could not be given back and ends by itself: %r", namespace.name, error
        )


async def _renew(namespace: KVNamespace, version: int, done: asyncio.Event) -> int:
    """Renew the lock until ``done``, and return the version that was written last."""
    while True:
        try:
            async with asyncio.timeout(LOCK_TTL / timedelta(seconds=3)):
                await done.wait()
            return version
        except TimeoutError:
            pass
        try:
            version = await namespace.put(LOCK_KEY, {"holder": process_name()}, ttl=LOCK_TTL, expect_version=version)
        except VersionConflict:
            logger.warning("the lock of the recovery of %s ran out and is another's now", namespace.name)
            return version
        except Exception as error:  # noqa: BLE001 - the sweep goes on without its lock; the next turn tries again
            logger.warning("the lock of the recovery of %s could not be renewed: %s", namespace.name, error)
