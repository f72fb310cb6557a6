"""An installation with short times, whose processes can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.end_to_end.processes import ROOT, Instance, instance, until

LEASE: Final = 2.0
SWEEP: Final = 1.0
SHORT_CLOCK: Final = {
    "VSKILL_QUEUE_LEASE": f"{LEASE:g}",
    "VSKILL_QUEUE_HEARTBEAT": "0.4",
    "VSKILL_QUEUE_POLL_INTERVAL": "0.05",
    "VSKILL_QUEUE_MAX_BATCH_WAIT": "0",
    "VSKILL_QUEUE_SHUTDOWN_GRACE": "5",
    "VSKILL_RECOVERY_INTERVAL": f"{SWEEP:g}",
    "VSKILL_LOG_LEVEL": "INFO",
}


@dataclass
class Role:
    """A process that runs a role; a negative exit code is the signal that ended it."""

    zygote: Zygote
    pid: int
    log: Path
    _code: int | None = field(default=None, init=False)

    def ends(self) -> int:
        """Wait for its end and return its exit code; may be called again."""
        if self._code is None:
            self._code = int(self.zygote.ask({"wait": self.pid})["code"])
        return self._code

    def succeeds(self) -> None:
        """Wait for its end, and fail unless it exits with 0."""
        code = self.ends()
        assert code == 0, f"it ended with {code}:\n{self.said()}"

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it; raise ``ProcessLookupError`` once ``ends`` has returned."""
        # Until then the system reserves its pid; afterwards another process may have it.
        if self._code is not None:
            raise ProcessLookupError(f"process {self.pid} has ended with {self._code}")
        os.kill(self.pid, number)

    def killed(self) -> None:
        """Kill it and wait for its end."""
        self.signal(signal.SIGKILL)
        assert self.ends() == -signal.SIGKILL, self.said()

    def waits_for(self, words: str) -> None:
        """Wait until its output has ``words``."""
        until(lambda: self.log.exists() and words in self.said())

    def said(self) -> str:
        """Return its output so far."""
        return self.log.read_text(errors="replace")


@dataclass
class Zygote:
    """The process that forks the processes of all roles."""

    process: subprocess.Popen[str]
    folder: Path
    numbers: Iterator[int] = field(default_factory=count)

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """Send one request and return the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the zygote ended with {self.process.wait()}"
        found: dict[str, Any] = json.loads(answer)
        return found

    def start(self, role: str, **arguments: Any) -> Role:
        """Fork a process that runs ``role``."""
        log = self.folder / f"{role}-{next(self.numbers)}.log"
        return Role(self, self.ask({"start": role, "arguments": arguments, "log": str(log)})["pid"], log)

    def run(self, role: str, **arguments: Any) -> str:
        """Run a role, which must succeed, and return its output."""
        played = self.start(role, **arguments)
        played.succeeds()
        return played.said()


@dataclass
class Installation:
    """An instance with its own database, and its zygote."""

    instance: Instance
    zygote: Zygote

    def start(self, role: str, **arguments: Any) -> Role:
        """Fork a process that runs ``role``."""
        return self.zygote.start(role, **arguments)

    def run(self, role: str, **arguments: Any) -> str:
        """Run a role, which must succeed, and return its output."""
        return self.zygote.run(role, **arguments)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, over a new connection."""
        return self.instance.rows(sql)

    def number(self, sql: str) -> int:
        """Return the single number that a query returns."""
        [(found,)] = self.rows(sql)
        return int(found)

    def wait_for(self, sql: str, expected: int) -> None:
        """Wait until a query returns ``expected``."""
        until(lambda: self.number(sql) == expected)

    @property
    def is_sqlite(self) -> bool:
        """Tell whether its database is SQLite."""
        return self.instance.database_url.startswith("sqlite")


def environments(names: Sequence[str], folder: Path, databases: dict[str, str] | None = None) -> str:
    """Return the value of VSKILL_ENVIRONMENTS for these names; the host of each is its name with ``.test``."""
    return json.dumps(
        {
            name: {
                "hosts": [f"{name}.test"],
                "public_url": f"http://{name}.test",
                "database": (databases or {}).get(name, "default"),
                "policy": {"source_file_roots": [str(folder)]},
            }
            for name in names
        }
    )


@contextmanager
def installation(folder: Path, names: Sequence[str] = ("default",), **variables: str) -> Iterator[Installation]:
    """Yield a migrated installation with environments of these names; its processes are killed at the end."""
    data_dir = folder / "data"
    chosen = {**SHORT_CLOCK, "VSKILL_ENVIRONMENTS": environments(names, data_dir), **variables}
    with instance(data_dir, **chosen) as made, zygote_of(made) as zygote:
        yield Installation(made, zygote)


@contextmanager
def zygote_of(made: Instance) -> Iterator[Zygote]:
    """Start the zygote of an instance."""
    variables = {**made.environment(), "DJANGO_SETTINGS_MODULE": "vskill.settings"}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.reliability.zygote"],
        cwd=ROOT,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Zygote(process, made.data_dir)
        finally:
            process.kill()
