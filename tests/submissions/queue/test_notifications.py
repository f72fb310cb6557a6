"""A message is noticed when it is committed, and not at the next poll."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from pytest_django import Settings

from submissions.queue import notifications
from submissions.queue.notifications import watch
from submissions.queue.statements import CHANNEL
from tests.submissions.queue.consumers import Recorder, consumer
from tests.submissions.queue.messages import send
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async
# Longer than any machine takes, shorter than the test's own limit.
SECONDS = 60
AN_HOUR = 3600.0


@asynccontextmanager
async def watched(alias: str) -> AsyncIterator[asyncio.Event]:
    """Give the event of a watch that has begun."""
    news = asyncio.Event()
    task = asyncio.create_task(watch(alias, news))
    try:
        async with asyncio.timeout(SECONDS):
            await news.wait()
        news.clear()
        yield news
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_a_committed_message_is_news(env: WorkerEnv) -> None:
    async with watched(env.database) as news:
        for subject in ("one", "two"):
            await in_thread(send)(env, subject)
            async with asyncio.timeout(SECONDS):
                await news.wait()
            news.clear()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no connections that a server could end")
async def test_a_listener_that_loses_its_connection_makes_another(
    env: WorkerEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifications, "RECONNECT_SECONDS", 0.01)

    def end_listeners() -> int:
        with connections[env.database].cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND query = %s",
                [f"LISTEN {CHANNEL}"],
            )
            return int(cursor.rowcount)

    async with watched(env.database) as news:
        assert await in_thread(end_listeners)() >= 1
        async with asyncio.timeout(SECONDS):
            await news.wait()
        news.clear()
        await in_thread(send)(env, "one")
        async with asyncio.timeout(SECONDS):
            await news.wait()


async def test_an_idle_consumer_takes_a_message_that_comes_between_two_polls(
    env: WorkerEnv, settings: Settings
) -> None:
    settings.QUEUE_POLL_INTERVAL = AN_HOUR
    done, stop = asyncio.Event(), asyncio.Event()

    async def work(_message: object) -> None:
        done.set()

    recorder = Recorder(work)
    running = asyncio.create_task(consumer(env, handlers=recorder.handlers).run(stop))
    async with asyncio.timeout(SECONDS):
        for subject in ("one", "two", "three"):
            done.clear()
            await in_thread(send)(env, subject)
            await done.wait()
        stop.set()
        await running
    assert recorder.seen == ["one", "two", "three"]
