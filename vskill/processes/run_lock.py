"""One run of a recurring work in an environment at a time: a lock that ends soon after its holder dies."""

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

LOCK_TTL: Final = timedelta(seconds=10)


class AlreadyRunning(VskillError):
    """Another run of the same work in the same environment holds the lock."""

    code = "already_running"


def lock_key(work: str) -> str:
    """Return the key of the lock of ``work``, which is the name of a command."""
    return f"lock:{work}"


@asynccontextmanager
async def run_lock(env: WorkerEnv, work: str) -> AsyncIterator[None]:
    """Hold the lock of ``work`` in ``env`` during the body; raise ``AlreadyRunning`` where another run holds it.

    It only keeps two runs, on whatever machine, from doing the same work. Each entry is guarded by its own version, so
    that a lost lock does no harm. Once the lock is held, no error of it reaches the body or replaces what the body
    returns or raises.
    """
    namespace = KVNamespace(KVEntry, env)
    try:
        version = await _write(namespace, work, 0)
    except VersionConflict:
        raise AlreadyRunning(
            f"Another {work} of {env.name!r} is running. Nothing was done; its lock ends by itself if it has died."
        ) from None
    done = asyncio.Event()
    renewing = asyncio.create_task(_renew(namespace, work, version, done))
    try:
        yield
    finally:
        # Not cancelled: a renewal that is under way decides which version is ours to delete.
        done.set()
        await _give_back(namespace, work, renewing)


async def _write(namespace: KVNamespace, work: str, expected: int) -> int:
    return await namespace.put(lock_key(work), {"holder": process_name()}, ttl=LOCK_TTL, expect_version=expected)


async def _give_back(namespace: KVNamespace, work: str, renewing: asyncio.Task[int]) -> None:
    try:
        # After this time the lock has ended anyway.
        async with asyncio.timeout(LOCK_TTL.total_seconds()):
            await namespace.delete(lock_key(work), expect_version=await renewing)
    except VersionConflict:
        logger.info("the lock of %s of %s is another's now", work, namespace.name)
    except Exception as error:  # noqa: BLE001 - the work is done, and its result counts
        logger.warning(
            "the lock of %s of %s could not be given back and ends by itself: %r", work, namespace.name, error
        )


async def _renew(namespace: KVNamespace, work: str, version: int, done: asyncio.Event) -> int:
    """Renew the lock until ``done``, and return the version that was written last."""
    while True:
        try:
            async with asyncio.timeout(LOCK_TTL / timedelta(seconds=3)):
                await done.wait()
            return version
        except TimeoutError:
            pass
        try:
            version = await _write(namespace, work, version)
        except VersionConflict:
            logger.warning("the lock of %s of %s ran out and is another's now", work, namespace.name)
            return version
        except Exception as error:  # noqa: BLE001 - the work goes on without its lock; the next turn tries again
            logger.warning("the lock of %s of %s could not be renewed: %s", work, namespace.name, error)
