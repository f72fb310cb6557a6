"""Measure: ``python -m tests.bench [--area NAME ...] [--database NAME ...] [--rounds N] [--strict]``.

``--entries``, ``--jobs`` and ``--skills`` say how much there is to measure.

Prints a table and writes build/bench.json. Each database is made for this run and deleted after it; the data of an
instance in this folder is not touched. The exit code is 0 when everything could be measured, and with ``--strict`` 1
when a bar was missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.bench.log import measure_log
from tests.bench.pages import measure_pages
from tests.bench.pipeline import measure_pipeline
from tests.bench.queue import measure_queue
from tests.bench.rows import Row, from_json, table, write
from tests.bench.search import measure_search
from tests.bench.webhooks import measure_webhooks
from tests.services.postgres import PostgresUnavailable, postgres_server

OUTPUT = Path("build") / "bench.json"
DATABASES = ("sqlite", "postgres")
AREAS = ("kv", "queue", "pipeline", "pages", "search", "log", "webhooks")
LEAST_ENTRIES = 4_000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--entries", type=entries_of, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--jobs", type=int, default=5_000, help="messages that the queue and its peers work off")
    parser.add_argument("--skills", type=int, default=10_000, help="skills of the registry whose pages are measured")
    parser.add_argument("--area", choices=AREAS, nargs="+", default=list(AREAS))
    parser.add_argument("--database", choices=DATABASES, nargs="+", default=list(DATABASES))
    parser.add_argument("--rounds", type=int, default=3, help="how often each measurement is repeated")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a bar was missed")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for database in options.database:
        try:
            for entries in options.entries if "kv" in options.area else []:
                rows += measure(database, entries, options.rounds)
            if "queue" in options.area:
                print(f"{database}, queue ...", file=sys.stderr, flush=True)
                rows += measure_queue(database, options.jobs, options.rounds)
            if "pipeline" in options.area:
                print(f"{database}, pipeline ...", file=sys.stderr, flush=True)
                rows += measure_pipeline(database, options.rounds)
            if "pages" in options.area:
                print(f"{database}, pages ...", file=sys.stderr, flush=True)
                rows += measure_pages(database, options.skills)
            if "search" in options.area:
                print(f"{database}, search ...", file=sys.stderr, flush=True)
                rows += measure_search(database)
            if "log" in options.area:
                print(f"{database}, log ...", file=sys.stderr, flush=True)
                rows += measure_log(database)
            if "webhooks" in options.area:
                print(f"{database}, webhooks ...", file=sys.stderr, flush=True)
                rows += measure_webhooks(database)
        except PostgresUnavailable as reason:
            print(f"{database}: not measured, {reason}", file=sys.stderr, flush=True)
    write(rows, OUTPUT)
    print(table(rows))
    print(f"\n{len(rows)} rows, also in {OUTPUT}; {sum(row.holds is False for row in rows)} bars were missed")
    return 1 if options.strict and any(row.holds is False for row in rows) else 0


def entries_of(text: str) -> int:
    """Read how many entries are written; refuse fewer than can be measured."""
    if not text.isdecimal() or int(text) < LEAST_ENTRIES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is too few: at least {LEAST_ENTRIES}, because a listing is measured page by page, "
            "and a page has 1,000 keys"
        )
    return int(text)


def measure(database: str, entries: int, rounds: int) -> list[Row]:
    """Measure the KV layer on a database made for it, in a process of its own, and return the rows."""
    print(f"{database}, {entries} entries ...", file=sys.stderr, flush=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vskill-bench-")))
        address = f"sqlite:///{folder / 'vskill.sqlite3'}"
        if database == "postgres":
            address = stack.enter_context(postgres_server())
        environment = {
            **os.environ,
            "DATABASE_URL": address,
            "DJANGO_SETTINGS_MODULE": "vskill.settings",
            "VSKILL_DATA_DIR": str(folder),
            "VSKILL_LOG_LEVEL": "WARNING",
        }
        command = [sys.executable, "-m", "tests.bench.kv", database, str(entries), str(rounds)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return from_json(json.loads(done.stdout))


if __name__ == "__main__":
    sys.exit(main())
