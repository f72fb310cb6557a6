"""What a consumer watches beside its work: new messages, and leases of workers that have ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NoReturn

from django.conf import settings

from submissions.queue.database import get_queue
from submissions.queue.worker_names import has_ended
from vskill.environments import WorkerEnv

logger = logging.getLogger(__name__)


@asynccontextmanager
async def watching(environments: Sequence[WorkerEnv], arrived: asyncio.Event) -> AsyncIterator[None]:
    """Set ``arrived`` whenever there may be something to receive, and expire leases of ended workers, during the
    body."""
    tasks = [asyncio.create_task(queue.watch(arrived)) for queue in {get_queue(env) for env in environments}]
    tasks.append(asyncio.create_task(_expire_leases_for_ever(environments, arrived)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _expire_leases_for_ever(environments: Sequence[WorkerEnv], arrived: asyncio.Event) -> NoReturn:
    while True:
        for env in environments:
            try:
                expired = await get_queue(env).expire_leases(env.name, has_ended)
            except Exception as error:  # noqa: BLE001 - the leases end by themselves, and the next turn asks again
                logger.warning("leases of workers that have ended in %s stay for now: %s", env.name, error)
            else:
                if expired:
                    logger.warning("%d messages of %s were held by workers that have ended", expired, env.name)
                    arrived.set()
        await asyncio.sleep(settings.QUEUE_POLL_INTERVAL)
