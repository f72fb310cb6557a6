"""Measure the KV layer on the database of ``DATABASE_URL``; ``tests.bench`` runs this in a separate process.

Most figures are ratios of two times of this run. The two are measured in turns, and the figure is the median of the
ratios of all rounds, so that a machine that is slow for a while is slow for both.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import django

if __name__ == "__main__":
    django.setup()

from django.db import connection

from marketplace.catalog import enumerate_published_skills
from submissions.models import SUBMISSION_PREFIX, SubmissionEntry
from submissions.recovery.damaged_entries import TABLES, ReadCounter, damaged_entries
from submissions.states import STUCK_THRESHOLD
from submissions.store.queries import get_stuck_submissions
from tests.bench.rows import Row, at_least, at_most, to_json
from tests.bench.store import STUCK, fill, fill_skills
from tests.vskill.kv.database_layer import Execute, around_each_statement
from vskill.environments import WorkerEnv, get_environment
from vskill.kv import bulk_read
from vskill.kv.codec import decode, prefix_end
from vskill.kv.namespace import KVNamespace
from vskill.kv.outcomes import decode_row
from vskill.kv.reader import CHUNK_SIZE, read_chunk
from vskill.kv.statements import statements
from vskill.kv.threads import readers
from vskill.processes.garbage import seldom_collected

WINDOW = 2000
DELAY = 0.005
# aget is so slow that only a sample of the keys is read; its time is linear in their number.
AGET_SAMPLE = 2000
MEGABYTE = 1024 * 1024
MANY = 100_000

Times = list[float]
"""Seconds, one item for each round."""


def range_select() -> int:
    """Read and decode all entries by one range select, written as simply as possible, and return their number."""
    columns = statements(SubmissionEntry, connection.vendor).read_keys.split(" FROM ")[0].removeprefix("SELECT ")
    sql = (
        f"SELECT {columns} FROM {SubmissionEntry._meta.db_table} "  # noqa: S608 - our own names
        "WHERE namespace = %(namespace)s AND key >= %(first)s AND key < %(end)s ORDER BY key"
    )
    count = 0
    with connection.cursor() as cursor:
        cursor.execute(sql, {"namespace": "default", "first": SUBMISSION_PREFIX, "end": prefix_end(SUBMISSION_PREFIX)})
        while rows := cursor.fetchmany(500):
            count += sum(decode_row(row).found for row in rows)
    return count


async def get_by_callers(namespace: KVNamespace, keys: Sequence[str]) -> int:
    """Read each key by its own ``get()``, from ``WINDOW`` concurrent callers, and return how many were found."""
    upcoming = iter(keys)

    async def caller() -> int:
        found = 0
        for key in upcoming:
            found += (await namespace.get(key)).found
        return found

    return sum(await asyncio.gather(*(caller() for _ in range(WINDOW))))


async def get_many(namespace: KVNamespace, keys: Sequence[str]) -> int:
    """Read all keys by one ``get_many()`` and return how many were found."""
    found = 0
    async for outcome in namespace.get_many(keys, window=WINDOW):
        found += outcome.found
    return found


def chunks_one_by_one(keys: Sequence[str]) -> int:
    """Read the chunks of ``get_many`` one after another, on one connection, and return how many keys were found."""
    found = 0
    for start in range(0, len(keys), CHUNK_SIZE):
        outcomes = read_chunk(SubmissionEntry, "default", "default", keys[start : start + CHUNK_SIZE])
        found += sum(outcome.found for outcome in outcomes.values())
    return found


async def gathered_aget(keys: Sequence[str]) -> int:
    """Read each key by the ORM's own ``aget`` and return their number."""
    rows = SubmissionEntry.objects

    async def one(key: str) -> Any:
        return decode((await rows.aget(namespace="default", key=key)).value)

    return len(await asyncio.gather(*(one(key) for key in keys)))


@contextmanager
def slow_selects() -> Iterator[None]:
    """Delay each select of the reader threads by five milliseconds, inside the database layer."""

    def delayed(execute: Execute, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        if sql.startswith("SELECT"):
            time.sleep(DELAY)
        return execute(sql, params, many, context)

    with around_each_statement(delayed):
        yield


def ratio(times: Times, others: Times) -> float:
    """Return how many times as long ``times`` are as ``others``: the median of the ratios of all rounds."""
    return median(one / other for one, other in zip(times, others, strict=True))


class Bench:
    """The measurements on one store."""

    def __init__(self, database: str, keys: list[str], rounds: int) -> None:
        self.area = f"kv, {database}, {len(keys)} entries"
        self.keys = keys
        self.rounds = rounds
        self.env: WorkerEnv = get_environment("default")
        self.namespace = KVNamespace(SubmissionEntry, self.env)

    def times(self, *ways: Callable[[], Awaitable[int]], expected: int | None = None, rounds: int = 0) -> list[Times]:
        """Return the times of each way, measured in turns, after a first round that is not counted.

        Each way returns the number of entries that it read, which has to be ``expected``, by default all of them.
        ``rounds`` replaces the number of rounds of this bench.
        """
        times: list[Times] = [[] for _ in ways]
        for round_number in range((rounds or self.rounds) + 1):
            for position, way in enumerate(ways):
                seconds, found = asyncio.run(self._timed(way))
                assert found == (len(self.keys) if expected is None else expected), found
                if round_number:
                    times[position].append(seconds)
        return times

    async def _timed(self, way: Callable[[], Awaitable[int]]) -> tuple[float, int]:
        started = time.perf_counter()
        found = await way()
        return time.perf_counter() - started, found

    async def _range(self) -> int:
        return await readers.run(range_select)

    def memory(self) -> list[Row]:
        """Measure by how much memory grows while all keys are read as a stream; to be called before all others."""
        asyncio.run(get_many(self.namespace, self.keys[:WINDOW]))
        # This resets the peak that the kernel counts.
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        asyncio.run(get_many(self.namespace, self.keys))
        return [at_most(self.area, "get_many: growth of memory", (_status("VmHWM") - before) / MEGABYTE, 100, "MB")]

    def reads(self) -> list[Row]:
        """Measure reading every key, against one range select and against gathered ``aget``."""
        ranged, by_get, by_many = self.times(
            self._range,
            lambda: get_by_callers(self.namespace, self.keys),
            lambda: get_many(self.namespace, self.keys),
        )
        sample = self.keys[:: max(1, len(self.keys) // AGET_SAMPLE)][:AGET_SAMPLE]
        [by_aget] = self.times(lambda: gathered_aget(sample), expected=len(sample), rounds=1)
        a_key = [median(by_aget) / len(sample), median(by_get) / len(self.keys)]
        return [
            Row(self.area, "one range select", median(ranged) * 1000, "ms"),
            Row(self.area, "get() by 2,000 callers", median(by_get) * 1000, "ms"),
            Row(self.area, "get_many", median(by_many) * 1000, "ms"),
            at_most(self.area, "get() against the range select", ratio(by_get, ranged), 4),
            at_least(self.area, "get() faster than gathered aget", a_key[0] / a_key[1], 12),
            self._of_many("get_many against the range select", ratio(by_many, ranged)),
        ]

    def _of_many(self, name: str, value: float) -> Row:
        """Return the row of a ratio, without a bar below ``MANY`` entries, where the overhead dominates."""
        return at_most(self.area, name, value, 1.5) if len(self.keys) >= MANY else Row(self.area, name, value, "x")

    def stuck(self) -> list[Row]:
        """Measure the search for stuck submissions, by scan and by index."""

        async def search(using: str) -> int:
            report = await get_stuck_submissions(self.env, older_than=STUCK_THRESHOLD, using=using)
            assert len(report.stuck) == STUCK
            return report.counts.read

        ranged, scan = self.times(self._range, lambda: search("scan"))
        [index] = self.times(lambda: search("index"), expected=STUCK, rounds=self.rounds * 5)
        return [
            self._of_many("stuck scan against the range select", ratio(scan, ranged)),
            at_most(self.area, "stuck by index", median(index) * 1000, 10, "ms"),
        ]

    def bulk_reads(self) -> list[Row]:
        """Measure the product's own long reads, on SQLite with and without bulk reads (see ``vskill.kv.bulk_read``)."""

        async def scan() -> int:
            report = await get_stuck_submissions(self.env, older_than=STUCK_THRESHOLD, using="scan")
            return report.counts.read

        async def enumerate_skills() -> int:
            return len((await enumerate_published_skills(self.env)).skills)

        async def verify() -> int:
            counter = ReadCounter()
            for model in TABLES:
                assert [damage async for damage in damaged_entries(self.env, model, counter)] == []
            return counter.read

        def row_by_row(read: Callable[[], Awaitable[int]]) -> Callable[[], Awaitable[int]]:
            async def reading() -> int:
                with patch.object(bulk_read, "MIN_CHUNK", sys.maxsize):
                    return await read()

            return reading

        rows = []
        for name, read, count in (
            ("recover_stuck's scan", scan, 1),
            ("enumerate_published_skills", enumerate_skills, 1),
            ("verify_store's read", verify, 2),
        ):
            ways = (read, row_by_row(read)) if connection.vendor == "sqlite" else (read,)
            shipped, *slow = self.times(*ways, expected=count * len(self.keys))
            rows.append(Row(self.area, name, median(shipped) * 1000, "ms"))
            for times in slow:
                rows.append(Row(self.area, f"{name}: row by row against bulk reads", ratio(times, shipped), "x"))
        return rows

    def round_trips(self) -> list[Row]:
        """Measure what concurrent selects are worth when each of them takes five milliseconds longer."""
        keys = self.keys[:10_000]
        ways = (lambda: readers.run(chunks_one_by_one, keys), lambda: get_many(self.namespace, keys))
        with slow_selects():
            one_by_one, at_once = self.times(*ways, expected=len(keys))
        started = time.process_time()
        asyncio.run(get_many(self.namespace, keys))
        computing = time.process_time() - started
        title = "10,000 keys with 5 ms added: chunks at once against one by one"
        return [
            at_least(self.area, title, ratio(one_by_one, at_once), 3),
            Row(self.area, "  its computing alone, without any delay", computing * 1000, "ms of CPU"),
        ]

    def listing(self) -> list[Row]:
        """Measure listing by pages of a thousand: the last page against the first, and a half against the whole."""

        async def pages() -> AsyncIterator[float]:
            cursor: str | None = None
            while True:
                started = time.perf_counter()
                page = await self.namespace.list(SUBMISSION_PREFIX, cursor=cursor)
                yield time.perf_counter() - started
                if page.list_complete:
                    return
                cursor = page.cursor

        async def listed() -> list[float]:
            return [seconds async for seconds in pages()]

        rounds = [asyncio.run(listed()) for _ in range(self.rounds * 2 + 1)][1:]
        best = [min(page) for page in zip(*rounds, strict=True)]
        tenth = max(1, len(best) // 10)
        # The mean of the best times of several pages at either end, because one page takes no longer than a hiccup.
        first, last = sum(best[:tenth]) / tenth, sum(best[-tenth:]) / tenth
        halves = sum(best) / (2 * sum(best[: len(best) // 2]))
        return [
            Row(self.area, "list: a page of 1,000 keys", sum(best) / len(best) * 1000, "ms"),
            at_most(self.area, "list: last page against the first", last / first, 1.5),
            at_most(self.area, "list: the whole against twice its first half (linear is 1)", halves, 1.25),
        ]


def _status(name: str) -> int:
    """Return the figure ``name`` of this process's memory, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def main(database: str, entries: int, rounds: int) -> list[Row]:
    bench = Bench(database, fill(entries), rounds)
    fill_skills(entries)
    connection.close()
    # As in the commands, which are what reads that much.
    with seldom_collected():
        rows = [
            *bench.memory(),
            *bench.reads(),
            *bench.stuck(),
            *bench.bulk_reads(),
            *bench.round_trips(),
            *bench.listing(),
        ]
    readers.close()
    return rows


if __name__ == "__main__":
    measured = main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps(to_json(measured)))
