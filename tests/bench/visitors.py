"""Let twenty visitors read pages of a running web process for a minute, while somebody submits repositories.

The web process is that of ``manage.py up``, with its limits of clients off: all visitors come from one address here.
"""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from statistics import quantiles
from typing import Final

from tests.bench.rows import Row, at_most
from tests.bench.workers import ROOT, our_module
from tests.end_to_end.processes import free_port
from tests.git_factory import make_repository, skill_md

VISITORS: Final = 20
_SUBMIT_EVERY: Final = 5.0
_PATIENCE: Final = 60.0
_MOST_MEGABYTES: Final = 200.0
_SLOWEST_SUBMISSION: Final = 1000.0
_LIMITS: Final = ("VSKILL_LIMIT_SUBMISSIONS", "VSKILL_LIMIT_READS", "VSKILL_LIMIT_DOWNLOADS")


@dataclass
class _Seen:
    """What the visitors saw: milliseconds of each answer, of each submission, and what went wrong."""

    pages: list[float] = field(default_factory=list)
    submissions: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def measure_visitors(area: str, paths: Sequence[str], environment: Mapping[str, str], seconds: float) -> list[Row]:
    """Return what visitors who read ``paths`` for so many seconds see, and the memory of the web process.

    ``environment`` names a database that is filled.
    """
    folder = Path(environment["VSKILL_DATA_DIR"])
    count = int(seconds / _SUBMIT_EVERY) + 1
    repositories = [
        f"file://{make_repository(folder / f'submitted-{number}.git', {'SKILL.md': skill_md(f'tool-{number}')})}"
        for number in range(count)
    ]
    seen = _Seen()
    with served({**environment, **dict.fromkeys(_LIMITS, "off"), "VSKILL_SOURCE_ROOTS": str(folder)}) as (port, web):
        end = time.monotonic() + seconds
        people = [threading.Thread(target=_visit, args=(port, paths, number, end, seen)) for number in range(VISITORS)]
        people.append(threading.Thread(target=_submit, args=(port, repositories, end, seen)))
        for one in people:
            one.start()
        for one in people:
            one.join()
        megabytes = _largest(web.pid)
    for error in seen.errors[:5]:
        print(f"{area}: {error}", flush=True)
    title = f"{VISITORS} visitors for {seconds:g} s"
    return [
        at_most(area, f"{title}, answers that failed", len(seen.errors), 0, "answers"),
        Row(area, f"{title}, pages", len(seen.pages) / seconds, "/s"),
        Row(area, f"{title}, p95", quantiles(seen.pages, n=20, method="inclusive")[-1], "ms"),
        at_most(area, f"{title}, slowest submission", max(seen.submissions, default=0), _SLOWEST_SUBMISSION, "ms"),
        at_most(area, f"{title}, web process at most", megabytes, _MOST_MEGABYTES, "MB"),
    ]


@contextmanager
def served(environment: Mapping[str, str]) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    port = free_port()
    command = [*our_module("uvicorn"), "vskill.asgi:application", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--lifespan", "off", "--log-level", "warning", "--no-proxy-headers"]
    with subprocess.Popen(command, cwd=ROOT, env=environment) as web:
        try:
            while not _answers(port):
                assert web.poll() is None, "the web process ended"
                time.sleep(0.1)
            yield port, web
        finally:
            web.terminate()


def _answers(port: int) -> bool:
    try:
        _ask(HTTPConnection("127.0.0.1", port, timeout=_PATIENCE), "/favicon.ico")
    except OSError:
        return False
    return True


def _ask(connection: HTTPConnection, path: str, body: str | None = None) -> int:
    headers = {"Content-Type": "application/json"} if body is not None else {}
    connection.request("GET" if body is None else "POST", path, body, headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def _visit(port: int, paths: Sequence[str], number: int, end: float, seen: _Seen) -> None:
    chance = random.Random(number)
    connection = HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
    while time.monotonic() < end:
        path = chance.choice(paths)
        begun = time.perf_counter()
        try:
            status = _ask(connection, path)
        except (OSError, HTTPException) as error:
            seen.errors.append(f"{path}: {error!r}")
            connection.close()
            continue
        seen.pages.append((time.perf_counter() - begun) * 1000)
        if status == 429 or status >= 500:
            seen.errors.append(f"{path}: {status}")
    connection.close()


def _submit(port: int, repositories: Sequence[str], end: float, seen: _Seen) -> None:
    for url in repositories:
        if time.monotonic() >= end:
            break
        # Each is somebody else's; a web process closes connections that are idle for so long.
        connection = HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
        begun = time.perf_counter()
        try:
            status = _ask(connection, "/api/v1/submissions", json.dumps({"repoUrl": url}))
        except (OSError, HTTPException) as error:
            seen.errors.append(f"the submission of {url}: {error!r}")
        else:
            seen.submissions.append((time.perf_counter() - begun) * 1000)
            if status != 202:
                seen.errors.append(f"the submission of {url}: {status}")
        connection.close()
        time.sleep(max(0.0, min(_SUBMIT_EVERY, end - time.monotonic())))


def _largest(pid: int) -> float:
    """Return the megabytes that a process had in memory at most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"the system does not say how much memory {pid} had")
