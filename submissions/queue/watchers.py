"""What a consumer minds beside its work: news of messages, and workers that have ended with messages in their hands."""

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
async def attentive(environments: Sequence[WorkerEnv], news: asyncio.Event) -> AsyncIterator[None]:
    """Set ``news`` whenever there may be something to take, and free what the dead hold, while the body runs."""
    tasks = [asyncio.create_task(queue.watch(news)) for queue in {get_queue(env) for env in environments}]
    tasks.append(asyncio.create_task(_free_for_ever(environments, news)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _free_for_ever(environments: Sequence[WorkerEnv], news: asyncio.Event) -> NoReturn:
    while True:
        for env in environments:
            try:
                freed = await get_queue(env).free(env.name, has_ended)
            except Exception as error:  # noqa: BLE001 - the leases end by themselves, and the next turn asks again
                logger.warning("what workers that have ended hold in %s stays leased for now: %s", env.name, error)
            else:
                if freed:
                    logger.warning("%d messages of %s were held by workers that have ended", freed, env.name)
                    news.set()
        await asyncio.sleep(settings.QUEUE_POLL_INTERVAL)
