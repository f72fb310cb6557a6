"""Run measured workers on a database that is made for them: they start, say that they are ready, and begin together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import psycopg

from tests.services.postgres import postgres_server

ROOT: Final = Path(__file__).resolve().parents[2]


@contextmanager
def bench_database(name: str) -> Iterator[dict[str, str]]:
    """Give the variables of a database that is made now and deleted afterwards."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="vskill-bench-")))
        address = f"sqlite:///{folder / 'vskill.sqlite3'}"
        if name == "postgres":
            address = stack.enter_context(postgres_server(durable=True))
        yield {
            **os.environ,
            "DATABASE_URL": address,
            "VSKILL_DATA_DIR": str(folder),
            "VSKILL_LOG_LEVEL": "WARNING",
            # How long a consumer waits before it asks whether others have left it work, at the end.
            "VSKILL_QUEUE_POLL_INTERVAL": os.environ.get("VSKILL_QUEUE_POLL_INTERVAL", "1"),
        }


def run_to_end(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Run a command and return what it printed."""
    return subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def last_line(text: str) -> dict[str, Any]:
    """Return the JSON object of the last line."""
    found: dict[str, Any] = json.loads(text.splitlines()[-1])
    return found


def let_it_count(address: str) -> None:
    """Let PostgreSQL count and tidy what was written into it, as its autovacuum does within a minute of operation."""
    if address.startswith("postgres:"):
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")


def work_together(command: Sequence[str], environment: Mapping[str, str], processes: int) -> list[dict[str, Any]]:
    """Run ``command`` in so many processes, which begin when all are ready, and return what each said at its end."""
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                subprocess.Popen(
                    command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            for _ in range(processes)
        ]
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n", "a worker did not start"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        told = []
        for worker in workers:
            assert worker.stdout is not None
            told.append(json.loads(worker.stdout.readline()))
            assert worker.wait() == 0
    return told


def our_module(module: str) -> list[str]:
    """Return the command line that runs a module of the benchmark."""
    return [sys.executable, "-m", module]
