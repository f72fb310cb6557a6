"""The roles of the reliability tests: functions that the zygote calls by name, each in its own process."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.db import connections, transaction
from django.test import override_settings

from submissions.discovery import discover
from submissions.intake import accept_one
from submissions.messages import VERIFY
from submissions.models import QueueMessage
from submissions.queue.base import Message
from submissions.queue.consumer import Consumer, ConsumerOptions
from submissions.queue.database import get_queue
from submissions.queue.process import run_process
from submissions.queue.settlement import Handler, Handlers
from submissions.queue.worker_names import worker_name
from submissions.recovery.sweep import recover_stuck
from submissions.states import State
from submissions.store.batched_transitions import move
from submissions.store.queries import get_submission
from submissions.store.transitions import Step, create_submission
from tests.marketplace.factories import publish_example, skill_md
from tests.reliability import kill_points
from tests.submissions.factories import make_submissions
from tests.submissions.front_door import EVIL, submit
from tests.submissions.uploads.uploading import token_for
from vskill.environments import WorkerEnv, get_environment
from vskill.kv.models import KVEntry
from vskill.kv.namespace import KVNamespace
from vskill.kv.threads import writers
from vskill.processes.heartbeat import process_name
from vskill.processes.stop_signals import StopSignals
from vskill.worker_context import require_worker_env

KIND = "reliability"
RUN = "run:"


def command(*, words: Sequence[str], kill_at: str | None = None) -> None:
    """Run a management command, and kill the process at the point ``kill_at`` if there is one."""
    kill_points.install(kill_at)
    call_command(*words)


def short_of_descriptors(*, words: Sequence[str], spare: int) -> None:
    """Run a management command in a process that may open ``spare`` more descriptors than it has open now."""
    limit = sum(1 for _ in Path("/proc/self/fd").iterdir()) + spare
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    call_command(*words)


def submit_to(*, names: Sequence[str], url: str) -> None:
    """Submit a repository to each environment."""
    for name in names:
        async_to_sync(submit)(get_environment(name), url, source="test", actor="tester")


def tokens(*, names: Sequence[str]) -> None:
    """Print, as one line of JSON, a token to upload with for each environment."""
    made = {name: token_for(get_environment(name)) for name in names}
    sys.stdout.write(json.dumps(made) + "\n")


def publish_bad(*, names: Sequence[str]) -> None:
    """Publish, in each environment, a skill that engines would hold, as one that they once found nothing in."""
    body = EVIL.partition("# Keys")[2]
    for name in names:
        publish_example(get_environment(name), files={"SKILL.md": skill_md("hello-skill", "Says hello.", body)})


def publish_several(*, names: Sequence[str], count: int) -> None:
    """Publish so many skills in each environment."""
    for name in names:
        for number in range(count):
            publish_example(get_environment(name), name=f"skill-{number}")


def web(*, port: int, kill_at: str | None = None) -> None:
    """Serve the product on a port of loopback."""
    import uvicorn  # noqa: PLC0415 - only this role needs it

    kill_points.install(kill_at)
    uvicorn.run("vskill.asgi:application", host="127.0.0.1", port=port, lifespan="off", log_level="warning")


def stuck(*, name: str, count: int, minutes: float) -> None:
    """Create ``count`` stuck submissions that last moved ``minutes`` ago."""
    make_submissions(get_environment(name), count, State.TIER1_SCANNING, age=timedelta(minutes=minutes))


def send(*, name: str, subjects: Sequence[str], kind: str = KIND) -> None:
    """Send one message per subject."""
    env = get_environment(name)
    with transaction.atomic(using=env.database):
        for subject in subjects:
            get_queue(env).send(env.name, kind, subject)


def send_many(*, name: str, subjects: Sequence[str]) -> None:
    """Send many messages at once, which are received in this order."""
    env = get_environment(name)
    QueueMessage.objects.using(env.database).bulk_create(
        [QueueMessage(environment=name, kind=KIND, subject=subject) for subject in subjects]
    )


def clear() -> None:
    """Delete all messages and the notes about them."""
    QueueMessage.objects.all().delete()
    KVEntry.objects.filter(key__startswith=RUN).delete()


def claim_all(*, name: str) -> None:
    """Claim and acknowledge messages until none is left, and store the subjects that were claimed."""
    env = get_environment(name)
    worker = process_name()

    async def claim() -> list[str]:
        subjects: list[str] = []
        queue = get_queue(env)
        while batch := await queue.receive(env.name, 30, worker=worker):
            subjects += [message.subject for message in batch.messages]
            assert all(await asyncio.gather(*(queue.acknowledge(message) for message in batch.messages)))
        return subjects

    subjects = async_to_sync(claim)()
    KVNamespace(KVEntry, env).put_sync(f"claimed:{worker}", subjects)


def claim_and_leave(*, name: str) -> None:
    """Claim one message for two minutes, and end without settling it."""
    env = get_environment(name)
    with override_settings(QUEUE_LEASE=120.0):
        batch = async_to_sync(get_queue(env).receive)(env.name, 1, worker="elsewhere")
    assert len(batch.messages) == 1


async def _note(message: Message, what: str) -> None:
    """Store that work on a message has begun or ended, with the worker and the number of crashes."""
    env = require_worker_env()
    await KVNamespace(KVEntry, env).put(
        f"{RUN}{message.subject}:{what}:{process_name()}:{message.token}", {"crashes": message.crashes}
    )


def _handlers(seconds: float) -> Handlers:
    """Return handlers that kill the process for the subjects ``exit``, ``segfault`` and ``memory``, and else wait."""

    async def run(message: Message) -> None:
        await _note(message, "begun")
        what = message.subject.split()[0]
        if what == "exit":
            os._exit(3)
        if what == "segfault":
            ctypes.string_at(0)
        if what == "memory":
            _use_up_memory()
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            # A file, because a note in a stalled database would have to wait.
            marker = os.environ["VSKILL_DATA_DIR"] + f"/stopped-{message.subject}-{os.getpid()}"
            os.close(os.open(marker, os.O_CREAT | os.O_WRONLY))
            raise
        await _note(message, "ended")

    async def give_up(message: Message, reason: str) -> None:
        await KVNamespace(KVEntry, require_worker_env()).put(f"given-up:{message.subject}", reason)

    return {KIND: Handler(run, give_up)}


def _use_up_memory() -> None:
    """Allocate memory until there is no more, and abort."""
    limit = 1024 * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    held = []
    try:
        while True:
            held.append(bytearray(64 * 1024 * 1024))
    except MemoryError:
        os.abort()


def consume(
    *,
    names: Sequence[str],
    seconds: float = 0.0,
    drain: bool = False,
    concurrency: int = 10,
    isolated: bool = False,
    elsewhere: bool = False,
) -> None:
    """Consume messages of the kind of the tests in the environments ``names``.

    Each message takes ``seconds``. With ``drain``, end when the queue is empty. ``concurrency`` is the number of
    batches in flight. With ``isolated``, be the process for isolated messages. With ``elsewhere``, use a worker name
    from which this machine cannot tell whether the worker is alive.
    """
    environments = [get_environment(name) for name in names]

    async def run_isolated(env: WorkerEnv) -> None:
        await run_process([sys.executable, "-m", "tests.reliability.isolated", env.name, str(seconds)])

    options = ConsumerOptions(
        3,
        concurrency,
        process_name() if elsewhere else worker_name(),
        drain=drain,
        isolated_only=isolated,
        run_isolated=None if isolated else run_isolated,
    )

    async def main(signals: StopSignals) -> None:
        await Consumer(environments, _handlers(seconds), options).run(signals.event())

    with StopSignals() as signals:
        async_to_sync(main)(signals)


def walk(*, name: str) -> None:
    """Work off submissions with every transition and every write, but without fetching and scanning."""
    env = get_environment(name)

    async def run(message: Message) -> None:
        submission = await get_submission(env, message.subject)
        submission = await move(env, Step(submission, State.TIER1_SCANNING, "", "test", "test"))
        await move(env, Step(submission, State.REJECTED, "", "test", "test"))

    async def give_up(_message: Message, _reason: str) -> None:
        raise AssertionError("nothing is given up here")

    options = ConsumerOptions(3, 10, process_name(), drain=True)
    async_to_sync(Consumer([env], {VERIFY: Handler(run, give_up)}, options).run)(asyncio.Event())


def accept_many(*, name: str, start: int, count: int) -> None:
    """Accept submissions as the web process does, with entry, history and message in one transaction each."""
    env = get_environment(name)
    for number in range(start, start + count):
        fields = {"repoUrl": f"https://git.example.org/a/{number}", "identity": f"skill {number}"}
        with transaction.atomic(using=env.database):
            made = create_submission(env, fields, actor="test", trigger="test")
            get_queue(env).send(env.name, VERIFY, made.id)


def sweep_often(*, name: str, times: int) -> None:
    """Run the sweep ``times`` times."""
    env = get_environment(name)
    for _ in range(times):
        async_to_sync(recover_stuck)(env, older_than=timedelta(seconds=30))


def accept_the_same(*, name: str, url: str, people: int) -> None:
    """Submit one skill ``people`` times concurrently."""
    env = get_environment(name)

    async def main() -> None:
        discovery = await discover(env, url)
        ends = [
            writers.run(accept_one, env, discovery, discovery.skills[0], source="test", actor=f"person {number}")
            for number in range(people)
        ]
        answers = await asyncio.gather(*ends)
        assert all(answer.submission is not None for answer in answers)

    async_to_sync(main)()


def stall(*, seconds: float) -> None:
    """Block every writer of the queue for ``seconds``, as a stalled database would."""
    connection = connections["default"]
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"LOCK TABLE {QueueMessage._meta.db_table} IN ACCESS EXCLUSIVE MODE")
        # On SQLite, the transaction itself blocks all other writers.
        cursor.execute("SELECT 1")
        sys.stdout.write("stalled\n")
        sys.stdout.flush()
        time.sleep(seconds)


def with_a_wrong_clock(*, minutes: float, words: Sequence[str]) -> None:
    """Run a command in a process whose clock is wrong by ``minutes``."""
    real = time.time
    shift = minutes * 60
    time.time = lambda: real() + shift
    from django.utils import timezone  # noqa: PLC0415 - its clock is changed in this role alone

    true_now = timezone.now
    timezone.now = lambda: true_now() + timedelta(seconds=shift)
    call_command(*words)


def published(*, names: Sequence[str]) -> None:
    """Fail unless each environment has published exactly one version of exactly one skill."""
    from marketplace.models import SkillEntry, SkillVersion  # noqa: PLC0415 - only this role looks at the marketplace

    for name in names:
        env = get_environment(name)
        rows: Any = (SkillEntry.objects.using(env.database), SkillVersion.objects.using(env.database))
        counted = [each.filter(namespace=name).count() for each in rows]
        assert counted == [1, 1], f"{name}: {counted}"
