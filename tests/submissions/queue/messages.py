"""Messages in a real queue, and the clock of the database moved instead of waited for."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from django.db import transaction
from django.db.models import F

from submissions.models import QueueMessage
from submissions.queue.base import Message, MessageBatch
from submissions.queue.database import get_queue
from vskill.environments import WorkerEnv

KIND = "test_message"


def send(env: WorkerEnv, *subjects: str, **how: object) -> None:
    """Send a message about each subject, oldest first."""
    for subject in subjects:
        assert get_queue(env).send(env.name, KIND, subject, **how)  # type: ignore[arg-type]  # passed on as they are


def send_of(env: WorkerEnv, publisher: str, count: int = 1, *, begin: int = 0, **how: object) -> None:
    """Send ``count`` messages of a publisher; their subjects are its name and a number, from ``begin``."""
    with transaction.atomic(using=env.database):
        send(env, *[f"{publisher} {number}" for number in range(begin, begin + count)], publisher=publisher, **how)


async def receive(
    env: WorkerEnv, limit: int = 100, *, isolated: bool = False, without: Collection[str] = ()
) -> MessageBatch:
    """Receive without waiting for a full batch."""
    return await get_queue(env).receive(env.name, limit, worker="test", isolated=isolated, without=without)


async def received(env: WorkerEnv, limit: int = 100) -> list[str]:
    """Return the subjects of what is received."""
    return [message.subject for message in (await receive(env, limit)).messages]


async def receive_one(env: WorkerEnv) -> Message:
    """Receive the one message that there is to receive."""
    [message] = (await receive(env)).messages
    return message


def row(env: WorkerEnv, subject: str) -> QueueMessage:
    """Return the row of the message about ``subject``."""
    found: QueueMessage = QueueMessage.objects.using(env.database).get(environment=env.name, subject=subject)
    return found


def pass_time(env: WorkerEnv, passed: timedelta) -> None:
    """Let every message be ``passed`` older: what was to come in that time has come."""
    rows = QueueMessage.objects.using(env.database)
    moved = {name: F(name) - passed for name in ("available_at", "due_at", "created_at")}
    rows.update(**moved)
    rows.filter(leased_until__isnull=False).update(leased_until=F("leased_until") - passed)


def let_leases_end(env: WorkerEnv) -> None:
    """Let every lease run out, as it does when a worker dies."""
    pass_time(env, timedelta(hours=1))
