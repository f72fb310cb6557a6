"""Measure the queue, and its peers on the same machine in the same run.

A submission is leased, read, moved twice (each a compare-and-set with its history row) and acknowledged, through the
consumer that the product runs, with an engine that does nothing in between. The peers run the same number of jobs that
do nothing. Every worker starts, says that it is ready, and begins when all are.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench.rows import Row, at_least
from tests.bench.workers import ROOT, bench_database, last_line, let_it_count, run_to_end, work_together

PEERS: Final = ROOT / "build" / "bench-peers"
REQUIREMENTS: Final = ROOT / "tests" / "bench" / "requirements.txt"
PROCESSES: Final = (1, 4)
OURS: Final = "tests.bench.queue_ours"
PEER: Final = "tests.bench.queue_peers"
KILLERS: Final = "tests.reliability.killers"
# For two workers, some fifteen seconds of work; a killer takes three processes with it.
OTHERS: Final = 6_000
DJANGO_TASKS: Final = "django-tasks-db"
PROCRASTINATE: Final = "procrastinate"


def measure_queue(database: str, jobs: int, rounds: int) -> list[Row]:
    """Return the rows of the queue on one database.

    Ours and the peers take turns, and the median of the rounds counts, of rates and of their ratios.
    """
    area = f"queue, {database}, {jobs} jobs"
    python = _peers()
    peers = [DJANGO_TASKS, PROCRASTINATE] if database == "postgres" else [DJANGO_TASKS]
    commands = {OURS: [sys.executable, "-m", OURS], **{peer: [str(python), "-m", PEER, peer] for peer in peers}}
    rows: list[Row] = []
    ours: dict[int, list[float]] = {}
    for count in PROCESSES:
        word = "process" if count == 1 else "processes"
        rates: dict[str, list[float]] = {name: [] for name in commands}
        for _round in range(rounds):
            for name, command in commands.items():
                rates[name].append(_throughput(database, command, jobs, count))
        ours[count] = rates[OURS]
        rows.append(Row(area, f"submissions a second, {count} {word}", median(ours[count]), "/s"))
        for peer in peers:
            rows.append(Row(area, f"{peer}, {count} {word}", median(rates[peer]), "/s"))
            ratio = median(one / other for one, other in zip(ours[count], rates[peer], strict=True))
            bar = 5.0 if peer == DJANGO_TASKS else 1.0
            rows.append(at_least(area, f"beside {peer}, {count} {word}", ratio, bar))
    rows.append(Row(area, "throughput of 4 processes beside 1", median(ours[4]) / median(ours[1]), "x"))
    with bench_database(database) as environment:
        told = last_line(run_to_end([sys.executable, "-m", OURS, "latency"], environment))
    rows.append(Row(area, "claim latency, p50", told["p50"], "ms"))
    rows.append(Row(area, "claim latency, p95", told["p95"], "ms"))
    rows.append(Row(area, "an empty poll", told["empty_poll"], "ms"))
    return rows + _beside_killers(f"queue, {database}", database)


def _beside_killers(area: str, database: str) -> list[Row]:
    """Return which part of their pace other messages keep beside one that kills its worker, deaths included."""
    with bench_database(database) as environment, TemporaryDirectory(prefix="vskill-bench-") as folder:
        command = [sys.executable, "-m", KILLERS, str(OTHERS), folder]
        paces = last_line(run_to_end(command, {**environment, "DJANGO_SETTINGS_MODULE": "tests.settings"}))
    title = f"pace of {OTHERS:,} others beside one that kills its worker by"
    return [at_least(area, f"{title} {killer}", pace * 100, 80, "%") for killer, pace in paces.items()]


def _throughput(database: str, command: Sequence[str], jobs: int, processes: int) -> float:
    """Return how many jobs a second so many workers do, from when all are ready to when the last one has ended."""
    with bench_database(database) as environment:
        run_to_end([*command, "prepare", str(jobs)], environment)
        let_it_count(environment["DATABASE_URL"])
        told = work_together([*command, "work"], environment, processes)
    done = sum(one["done"] for one in told)
    assert done == jobs, f"{done} of {jobs} jobs were done"
    seconds: float = max(one["seconds"] for one in told)
    return jobs / seconds


def _peers() -> Path:
    """Return the interpreter that has the peers, installed into an environment of their own on first use."""
    python = PEERS / "bin" / "python"
    stamp = PEERS / "installed"
    wanted = REQUIREMENTS.read_text() + (ROOT / "requirements.txt").read_text() + sys.version
    if not stamp.exists() or stamp.read_text() != wanted:
        print("Installing the peers of the queue into build/bench-peers ...", file=sys.stderr, flush=True)
        venv.create(PEERS, with_pip=True, clear=True)
        files = [argument for path in ("requirements.txt", str(REQUIREMENTS)) for argument in ("-r", path)]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *files], cwd=ROOT, check=True)
        stamp.write_text(wanted)
    return python
