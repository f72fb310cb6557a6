"""Go through the first hour and print what took how long; exit code 1 means that something is not as it is told.

Run it with ``python -m tests.first_hour [--install]``.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import sqlite3
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError

from tests.first_hour.bare import Bare, Failed
from tests.process_groups import Started

# Skills of the demo that are published, and one submission of our own.
DEMO: Final = {
    "colour-contrast",
    "csv-tidy",
    "link-check",
    "meeting-minutes",
    "release-notes",
    "sql-review",
    "诗词赏析",
}
OWN: Final = "hour-glass"
SKILL: Final = f"""---
name: {OWN}
description: Tells how much of an hour is left. Use it when somebody asks for the time.
license: MIT
---

# Hour glass

Say how many minutes are left until the next full hour.
"""
BACKUP: Final = "import sqlite3; sqlite3.connect('data/vskill.sqlite3').backup(sqlite3.connect('backup.sqlite3'))"


def expect(is_so: object, words: str) -> None:
    """Raise ``Failed`` with these words where something is not so."""
    if not is_so:
        raise Failed(words)


class Hour:
    """The steps, in their order."""

    def __init__(self, bare: Bare, port: int) -> None:
        self._bare = bare
        self._port = port
        self.took: dict[str, float] = {}

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        yield
        self.took[name] = time.monotonic() - started
        print(f"{self.took[name]:6.1f} s  {name}", flush=True)

    def go_through(self) -> None:
        """Do everything; raise ``Failed`` at the first thing that is not as it should be."""
        self._make_repository()
        with self._bare.make_run(self._port) as first:
            with self._step("make run comes up"):
                self._until(first, lambda: "Ctrl-C ends it" in first.said())
            said = re.sub(r"\x1b\[[0-9;]*m", "", first.said())
            expect(f"runs at http://127.0.0.1:{self._port}\n" in said, said)
            expect(re.search(r"user admin   password \S{12,}", said), said)
            expect(self._get("/healthz")[0] == 200, "it is not healthy")
            with self._step("the demo is published"):
                self._until(first, lambda: self._published() >= DEMO)
            with self._step("a second one is told of the first"):
                self._a_second_one()
            with self._step("a repository of this machine is submitted and published"):
                address = (self._bare.home / "repository").as_uri()
                expect(OWN in (printed := self._bare.manage("submit", address)), printed)
                self._until(first, lambda: OWN in self._published())
                expect(OWN in self._get(f"/skills?q={OWN}")[1], "it is not found on the pages")
            with self._step("settings, recover_stuck and queue_status"):
                self._look_around()
            with self._step("a backup is made and read"):
                self._back_up()
            with self._step("Ctrl-C ends it"):
                first.interrupt()
                first.ends(60)
            expect("nothing that was accepted is lost" in first.said(), first.said())
            expect("Traceback" not in first.said(), first.said())
        expect(self._bare.processes() == [], f"still there: {self._bare.processes()}")
        with self._bare.make_run(self._port) as second:
            with self._step("make run comes up again"):
                self._until(second, lambda: "Ctrl-C ends it" in second.said())
            expect("shown once" not in second.said(), second.said())
            expect(self._published() == DEMO | {OWN}, "something is not there any more")
            second.interrupt()
            second.ends(60)
        expect(self._bare.processes() == [], f"still there: {self._bare.processes()}")

    def _make_repository(self) -> None:
        repository = self._bare.home / "repository"
        (repository / OWN).mkdir(parents=True)
        (repository / OWN / "SKILL.md").write_text(SKILL, encoding="utf-8")
        who = ("-c", "user.name=Somebody New", "-c", "user.email=new@example.org")
        for arguments in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "Add a skill")):
            self._bare.run("git", "-C", str(repository), *arguments)
        (self._bare.checkout / ".env").write_text(f"VSKILL_SOURCE_ROOTS={self._bare.home}\n", encoding="utf-8")

    def _a_second_one(self) -> None:
        with self._bare.make_run(free_port()) as other:
            expect(other.ends(60) != 0, "it started")
            expect(f"already runs on {self._bare.checkout / 'data'}: process " in other.said(), other.said())
            expect(f"http://127.0.0.1:{self._port}." in other.said(), other.said())

    def _look_around(self) -> None:
        settings = json.loads(self._bare.manage("settings", "--json"))["settings"]
        roots = next(one for one in settings if one["name"] == "VSKILL_SOURCE_ROOTS")
        expect((roots["value"], roots["source"]) == (str(self._bare.home), ".env"), str(roots))
        printed = self._bare.manage("recover_stuck")
        expect(printed.startswith("default: nothing is stuck"), printed)
        printed = self._bare.manage("queue_status")
        expect("0 waiting" in printed and "1 consumer" in printed, printed)

    def _back_up(self) -> None:
        self._bare.run("python3", "-c", BACKUP)
        copy = self._bare.checkout / "backup.sqlite3"
        with closing(sqlite3.connect(copy)) as connection:
            expect(connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "the copy is damaged")
        printed = self._bare.manage("verify_store", DATABASE_URL=f"sqlite:///{copy}")
        expect("nothing is wrong" in printed, printed)

    def _get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def _published(self) -> set[str]:
        status, text = self._get("/api/v1/skills")
        document: dict[str, Any] = json.loads(text) if status == 200 else {"items": []}
        return {item["displayName"] for item in document["items"]}

    def _until(self, running: Started, is_so: Callable[[], bool]) -> None:
        while not is_so():
            expect(running.ended() is None, f"it has ended:\n{running.said()}")
            time.sleep(0.1)


def free_port() -> int:
    """Return a port of loopback that was free a moment ago."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    """Read the arguments and go."""
    parser = argparse.ArgumentParser(prog="python -m tests.first_hour", description=__doc__)
    parser.add_argument("--install", action="store_true", help="let pip install the packages, which takes longer")
    arguments = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="vskill-first-hour-") as folder:
        try:
            hour = Hour(Bare(Path(folder).resolve(), install=arguments.install), free_port())
            hour.go_through()
        except Failed as failed:
            sys.exit(f"Not as told: {failed}")
    print(f"{time.monotonic() - started:6.1f} s  all of it")


if __name__ == "__main__":
    main()
