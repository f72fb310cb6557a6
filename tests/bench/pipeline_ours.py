"""The consumer whose pipeline is measured: ``prepare REPOSITORIES SKILLS`` or ``work``, in a process of its own."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from pathlib import Path
from typing import Final

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")
    django.setup()

from asgiref.sync import async_to_sync
from django.core.management import call_command

from submissions.messages import VERIFY
from submissions.pipeline.handlers import make_handlers
from submissions.queue.base import Message
from submissions.queue.consumer import Consumer, ConsumerOptions
from submissions.queue.settlement import Handler
from submissions.sandbox.fork_server import close_fork_servers
from submissions.states import State
from submissions.store.queries import get_submission
from tests.bench.ready import say, wait_for_the_others
from tests.git_factory import make_repository, skill_md
from tests.submissions.front_door import submit
from vskill.environments import get_environment
from vskill.worker_context import require_worker_env, run_with_worker_env

SCRIPT: Final = """import argparse
import csv
import sys


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    with open(parser.parse_args().table, newline="") as file:
        rows = list(csv.reader(file))
    csv.writer(sys.stdout).writerows(sorted(rows))


if __name__ == "__main__":
    main()
"""


def files_of(number: int) -> dict[str, bytes | str]:
    """Return a small skill: its SKILL.md, a script and a reference."""
    name = f"table-tool-{number}"
    body = "".join(f"## Step {step}\n\nSort table {number} and read it again.\n\n" for step in range(20))
    return {
        f"skills/{name}/SKILL.md": skill_md(name, f"Sorts tables of kind {number}.") + body,
        f"skills/{name}/scripts/sort_table.py": f"# Table {number}\n{SCRIPT}",
        f"skills/{name}/references/tables.md": "A table has rows and columns.\n" * 40,
    }


async def _submit(url: str) -> None:
    env = get_environment("default")
    _discovery, answers = await run_with_worker_env(env, submit, env, url, path="", source="bench", actor="bench")
    assert all(answer.submission is not None for answer in answers), answers


def prepare(repositories: int, skills: int) -> None:
    """Make the tables, the repositories and their submissions."""
    call_command("migrate", verbosity=0)
    folder = Path(os.environ["VSKILL_DATA_DIR"])
    for number in range(repositories):
        files = {path: content for one in range(skills) for path, content in files_of(number * skills + one).items()}
        url = f"file://{make_repository(folder / f'repository-{number}.git', files)}"
        async_to_sync(_submit)(url)


def _cpu(*whose: int) -> float:
    used = [resource.getrusage(who) for who in whose or (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def work() -> None:
    """Work until nothing is left, and say what was published, how long it took and what it used."""
    env = get_environment("default")
    published = 0
    ended_at = 0.0
    handlers = make_handlers()

    async def run(message: Message) -> None:
        nonlocal ended_at, published
        await handlers[VERIFY].run(message)
        submission = await get_submission(require_worker_env(), message.subject)
        published += submission.state == State.PUBLISHED
        ended_at = time.perf_counter()

    handler = Handler(run, handlers[VERIFY].on_parked)
    consumer = Consumer([env], {VERIFY: handler}, ConsumerOptions(3, 10, f"bench-{os.getpid()}", drain=True))
    began_at, cpu_before = wait_for_the_others(), _cpu()
    async_to_sync(consumer.run)(asyncio.Event())
    # What children used is counted once they have been waited for, and theirs by the servers that forked them.
    close_fork_servers()
    largest = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    say(
        {
            "published": published,
            "seconds": max(0.0, ended_at - began_at),
            "cpu": _cpu() - cpu_before,
            "children": _cpu(resource.RUSAGE_CHILDREN),
            "megabytes": largest / 1024,
        }
    )


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(int(sys.argv[2]), int(sys.argv[3]))
    else:
        work()
