"""Real processes of the product; each instance has its own data directory and database."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import psycopg
from django.conf import settings

from tests.process_groups import Started, started_group

ROOT: Final = Path(__file__).resolve().parents[2]
# Short leases, so that the work of a killed consumer is redelivered within seconds, and a high limit of crashes.
QUICK_QUEUE: Final = {
    "VSKILL_QUEUE_LEASE": "4",
    "VSKILL_QUEUE_HEARTBEAT": "0.5",
    "VSKILL_QUEUE_POLL_INTERVAL": "0.05",
    "VSKILL_QUEUE_MAX_BATCH_WAIT": "0",
    "VSKILL_QUEUE_MAX_CRASHES": "50",
}
# Several threads may want the first instance.
_migrating: Final = threading.Lock()


@dataclass
class Instance:
    """An installation: its environment variables, its processes, and queries of its database."""

    data_dir: Path
    database_url: str
    variables: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Return the environment of its processes, which takes only PATH from the test run."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.data_dir),
            "LC_ALL": "C.UTF-8",
            "PYTHONWARNINGS": "error",
            "VSKILL_DATA_DIR": str(self.data_dir),
            "DATABASE_URL": self.database_url,
            "VSKILL_SOURCE_ROOTS": str(self.data_dir),
            "VSKILL_HOSTS": "127.0.0.1,localhost",
            # Tests that wait for something ask far more often than anybody reads.
            "VSKILL_LIMIT_READS": "off",
            **self.variables,
        }

    def manage(self, *arguments: str, **variables: str) -> str:
        """Run one management command with more environment variables; it must succeed. Return its output."""
        ended = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**self.environment(), **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, f"{arguments} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}"
        return ended.stdout

    @contextmanager
    def started(self, *arguments: str) -> Iterator[Started]:
        """Start a command in its own process group, as a terminal does, and kill the group at the end."""
        log = self.data_dir / f"{arguments[0]}-{uuid.uuid4().hex[:6]}.log"
        with started_group([sys.executable, "manage.py", *arguments], ROOT, self.environment(), log) as started:
            yield started

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, over a new connection."""
        if self.database_url.startswith("sqlite"):
            path = self.database_url.removeprefix("sqlite:///")
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
                return connection.execute(sql).fetchall()
        with psycopg.connect(self.database_url) as connection:
            # psycopg asks for literal queries, and all callers pass one.
            return connection.execute(sql.encode()).fetchall()

    def states(self) -> dict[str, str]:
        """Return the state of each submission, by the name of its skill."""
        return dict(self.rows("SELECT skill_name, state FROM submissions_submissionentry"))

    def steps(self) -> dict[str, list[tuple[str, str]]]:
        """Return the history rows of each submission, oldest first."""
        walked: dict[str, list[tuple[str, str]]] = {}
        sql = "SELECT submission_id, from_state, to_state FROM submissions_submissiontransition ORDER BY id"
        for submission_id, before, after in self.rows(sql):
            walked.setdefault(submission_id, []).append((before, after))
        return walked

    def processes(self) -> dict[int, str]:
        """Return the command line of every process of the instance, found by the data directory that it uses."""
        mark = str(self.data_dir).encode()
        found: dict[int, str] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            # A race: the process may end in between.
            with contextlib.suppress(OSError):
                told = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
                alive = (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
                if alive and mark in told:
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found


def until(is_so: Callable[[], bool]) -> None:
    """Wait until the condition is true, however long that takes; the timeout of the test is the limit."""
    with subprocess.Popen(["tail", "-f", "/dev/null"]) as clock:
        try:
            while not is_so():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    clock.wait(0.02)
        finally:
            clock.kill()


def free_port() -> int:
    """Return a port of loopback that was free a moment ago."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def instance(data_dir: Path, **variables: str) -> Iterator[Instance]:
    """Yield a migrated installation on the kind of database that this test run uses."""
    data_dir.mkdir()
    with _migrating:
        template = _migrated()
    with database(data_dir, copy_of=template) as url:
        yield Instance(data_dir, url, variables)


@contextmanager
def bare_instance(data_dir: Path, **variables: str) -> Iterator[Instance]:
    """Yield an installation whose database has no tables."""
    data_dir.mkdir()
    with database(data_dir) as url:
        yield Instance(data_dir, url, variables)


@cache
def _migrated() -> str:
    """Migrate a database once in the process of the tests, and return its URL; it is kept until that ends."""
    folder = Path(tempfile.mkdtemp(prefix="migrated-"))
    kept = contextlib.ExitStack()
    atexit.register(kept.close)
    kept.callback(shutil.rmtree, folder)
    url = kept.enter_context(database(folder))
    Instance(folder, url).manage("migrate", "-v", "0")
    return url


@contextmanager
def database(data_dir: Path, copy_of: str | None = None) -> Iterator[str]:
    """Yield the URL of a database of the kind that this test run uses, below ``data_dir``.

    It has no tables, or those of the database at the URL ``copy_of``, which nobody uses meanwhile.
    """
    default = settings.DATABASES["default"]
    if default["ENGINE"] == "django.db.backends.sqlite3":
        path = data_dir / "vskill.sqlite3"
        if copy_of:
            shutil.copy(copy_of.removeprefix("sqlite:///"), path)
        yield f"sqlite:///{path}"
        return
    template = f' TEMPLATE "{copy_of.rpartition("/")[2]}"' if copy_of else ""
    server = f"postgres://{default['USER']}:{default['PASSWORD']}@{default['HOST']}:{default['PORT']}"
    name = f"instance_{uuid.uuid4().hex}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"{template}'.encode())
        try:
            yield f"{server}/{name}"
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())
