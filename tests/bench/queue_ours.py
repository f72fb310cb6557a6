"""Our part of the measurement of the queue: ``prepare JOBS``, ``work`` or ``latency``, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")
    django.setup()

from asgiref.sync import async_to_sync
from django.core.management import call_command

from submissions.messages import VERIFY
from submissions.queue.base import Message
from submissions.queue.consumer import Consumer, ConsumerOptions
from submissions.queue.database import get_queue
from submissions.queue.pause import get_pause
from submissions.queue.settlement import Handler
from submissions.states import State
from submissions.store.batched_transitions import move
from submissions.store.queries import get_submission
from submissions.store.transitions import Step
from tests.bench.ready import say, wait_for_the_others
from tests.submissions.factories import make_submissions
from vskill.environments import get_environment
from vskill.kv.threads import writers
from vskill.worker_context import require_worker_env

MESSAGES = 60
POLLS = 300


async def verify(message: Message) -> None:
    """Take a submission through its states as the pipeline does, with nothing to fetch and nothing to scan."""
    env = require_worker_env()
    submission = await get_submission(env, message.subject)
    submission = await move(env, Step(submission, State.TIER1_SCANNING, "", "bench", "tier1"))
    await move(env, Step(submission, State.REJECTED, "nothing was checked", "bench", "tier1"))


def consumer(run: Callable[[Message], Awaitable[None]], *, drain: bool) -> Consumer:
    """Return a consumer with the sizes that are shipped."""

    async def give_up(message: Message, reason: str) -> None:
        raise AssertionError(f"{message.subject} was given up: {reason}")

    options = ConsumerOptions(3, 10, f"bench-{os.getpid()}", drain=drain)
    return Consumer([get_environment("default")], {VERIFY: Handler(run, give_up)}, options)


def prepare(jobs: int) -> None:
    """Make the tables and the submissions."""
    call_command("migrate", verbosity=0)
    make_submissions(get_environment("default"), jobs, message=True)


def work() -> None:
    """Work until nothing is left, and say how many were done and when the last one ended."""
    ended_at = 0.0

    async def run(message: Message) -> None:
        nonlocal ended_at
        await verify(message)
        ended_at = time.perf_counter()

    running = consumer(run, drain=True)
    began_at = wait_for_the_others()
    async_to_sync(running.run)(asyncio.Event())
    say({"done": running.report.ends["done"], "seconds": max(0.0, ended_at - began_at)})


async def _latencies() -> list[float]:
    """Return how long messages waited for a consumer that had nothing to do, each sent at another moment."""
    env = get_environment("default")
    stop = asyncio.Event()
    sent: dict[str, float] = {}
    waits: list[float] = []
    claimed = asyncio.Event()

    async def run(message: Message) -> None:
        waits.append(time.perf_counter() - sent[message.subject])
        claimed.set()

    working = asyncio.create_task(consumer(run, drain=False).run(stop))
    for number in range(MESSAGES):
        claimed.clear()
        # At moments that have nothing to do with the beat of the polls.
        await asyncio.sleep(0.037 * (number % 13))
        await writers.run(get_queue(env).send, env.name, VERIFY, f"message {number}")
        sent[f"message {number}"] = time.perf_counter()
        await claimed.wait()
    stop.set()
    await working
    return sorted(waits)


async def _empty_polls() -> float:
    """Return the milliseconds that one look into an empty queue takes, the pause included."""
    env = get_environment("default")
    began_at = time.perf_counter()
    for _ in range(POLLS):
        assert await get_pause(env) is None
        assert not await get_queue(env).receive(env.name, 30, worker="bench")
    return (time.perf_counter() - began_at) / POLLS * 1000


def latency() -> None:
    """Measure how long a message waits to be claimed, and what an empty poll costs."""
    call_command("migrate", verbosity=0)
    waits: list[float] = async_to_sync(_latencies)()
    told: dict[str, Any] = {
        "p50": waits[len(waits) // 2] * 1000,
        "p95": waits[len(waits) * 95 // 100] * 1000,
        "empty_poll": async_to_sync(_empty_polls)(),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    Path(os.environ["VSKILL_DATA_DIR"]).mkdir(exist_ok=True)
    if sys.argv[1] == "prepare":
        prepare(int(sys.argv[2]))
    else:
        {"work": work, "latency": latency}[sys.argv[1]]()
