"""Our part of the measurement of the log, in a process of its own: two logs, each in a database of its own, in turns.

``python -m tests.bench.log_ours FEW MANY ROUNDS``. Both logs get the entries by the code that is measured, with a
signed head now and then. Each round does everything once with the short log and once with the long one, so that a
machine that is slow for a while is slow for both. Statements and the work of the database are counted in a round of
their own.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any, Final

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "vskill.settings")
    os.environ["VSKILL_ENVIRONMENTS"] = json.dumps({"few": {"hosts": ["few.test"]}, "many": {"hosts": ["many.test"]}})
    django.setup()

import psycopg
from django.core.management import call_command
from django.db import connections, transaction

from marketplace.models import LogLeaf, LogPending, SigningKey, SkillVersion
from marketplace.provenance.keys import SigningKeys, write_keys
from marketplace.provenance.known_keys import remember_keys
from marketplace.provenance.log import append_pending, latest_head, sign_head
from marketplace.provenance.proofs import consistency_proof, inclusion_proof, log_size
from marketplace.provenance.reading import leaves_about, publication_leaf
from tests.bench.ready import say
from tests.bench.workers import let_it_count
from vskill.environments import WorkerEnv, get_environment

LOGS: Final = ("few", "many")
# Entries between two signed heads.
_OF_A_HEAD: Final = 50
_PAGE: Final = 500
_COUNTED: Final = 25
_STATEMENTS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")


class Log:
    """A log that is measured."""

    def __init__(self, env: WorkerEnv, keys: SigningKeys, row: SigningKey) -> None:
        """Keep what signs its heads."""
        self.env, self._keys, self._row = env, keys, row
        self._chance, self.size = random.Random(7), log_size(env)

    def add(self, count: int) -> None:
        """Append so many entries, as publications write them."""
        LogPending.objects.using(self.env.database).bulk_create(
            LogPending(namespace=self.env.name, version_number=number, kind="published", body=_entry(number))
            for number in range(self.size, self.size + count)
        )
        self.size += append_pending(self.env)

    def works(self) -> dict[str, Callable[[], object]]:
        """Return what is measured, each by its name; the first appends what the second signs."""
        env = self.env
        some = self._chance.randrange
        version = SkillVersion(pk=some(self.size))
        return {
            "appending an entry": lambda: self.add(1),
            "signing the head": lambda: sign_head(env, self._keys, self._row),
            "reading the newest head": lambda: latest_head(env),
            "an inclusion proof": lambda: inclusion_proof(env, some(self.size), self.size),
            "a consistency proof": lambda: consistency_proof(env, 1 + some(self.size), self.size),
            "a page of entries": lambda: self._page(some(max(1, self.size - _PAGE))),
            "the entries about a version": lambda: (publication_leaf(env, version), leaves_about(env, version)),
        }

    def _page(self, start: int) -> list[LogLeaf]:
        rows = LogLeaf.objects.using(self.env.database).filter(namespace=self.env.name)
        return list(rows.filter(number__gte=start, number__lt=start + _PAGE).order_by("number"))


def _entry(number: int) -> str:
    told = {"type": "published", "skill": f"skill-{number}", "contentHash": f"{number:064x}", "zip": f"{number:064x}"}
    return json.dumps({**told, "tarGz": f"{number:064x}", "verdict": "clear", "commit": f"{number:040x}"})


class Work:
    """The work of the database alias ``name`` since its beginning: instructions on SQLite, rows read on PostgreSQL."""

    def __init__(self, name: str) -> None:
        """Begin; call it in a transaction."""
        self._connection, self._steps = connections[name], 0
        self._before = 0
        if self._connection.vendor == "sqlite":
            self._connection.connection.set_progress_handler(self._step, 1)
        else:
            self._before = self._rows()

    def _step(self) -> int:
        self._steps += 1
        return 0

    def done(self) -> int:
        """End, and return how much it was."""
        if self._connection.vendor == "sqlite":
            self._connection.connection.set_progress_handler(None, 0)
            return self._steps
        return self._rows() - self._before

    def _rows(self) -> int:
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables")
            return int(cursor.fetchone()[0] or 0)


@contextmanager
def _statements(name: str) -> Iterator[list[str]]:
    seen: list[str] = []

    def note(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return run(sql, params, many, context)

    with connections[name].execute_wrapper(note):
        yield seen


def _databases() -> None:
    """Give each log a database of its own beside the one of ``DATABASE_URL``."""
    own = connections.databases["default"]
    for name in LOGS:
        place = f"{own['NAME']}_{name}"
        if own["ENGINE"].endswith("postgresql"):
            with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
                connection.execute(f'CREATE DATABASE "{place}"'.encode())
        connections.databases[name] = {**own, "NAME": place}
        call_command("migrate", database=name, verbosity=0)


def measure(few: int, many: int, rounds: int) -> dict[str, Any]:
    """Return milliseconds in the median, statements and work of the database, by what was done and by log."""
    _databases()
    with TemporaryDirectory() as folder:
        keys = write_keys(Path(folder) / "keys.pem")
    logs: dict[str, Log] = {}
    for name, size in zip(LOGS, (few, many), strict=True):
        env = get_environment(name)
        object.__setattr__(env, "database", name)
        row, _files = remember_keys(env, keys)
        logs[name] = one = Log(env, keys, row)
        while one.size < size:
            one.add(min(_OF_A_HEAD, size - one.size))
            sign_head(env, keys, row)
        if connections[name].vendor == "postgresql":
            let_it_count(os.environ["DATABASE_URL"].rpartition("/")[0] + f"/{connections.databases[name]['NAME']}")
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for _round in range(rounds):
        for name, log in logs.items():
            for what, work in log.works().items():
                begun = time.perf_counter()
                work()
                times[what][name].append((time.perf_counter() - begun) * 1000)
    counted: dict[str, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    # Proofs differ by what they are about.
    for _round in range(_COUNTED):
        for name, log in logs.items():
            for what, work in log.works().items():
                counted[what][name].append(_counted(name, work))
    return {
        what: {
            name: {
                "ms": median(found),
                "work": fmean(work for work, _statements in counted[what][name]),
                "statements": max(statements for _work, statements in counted[what][name]),
            }
            for name, found in by_log.items()
        }
        for what, by_log in times.items()
    }


def _counted(name: str, work: Callable[[], object]) -> tuple[int, int]:
    """Return the work of the database and the number of statements of one thing."""
    with transaction.atomic(using=name):
        counter = Work(name)
        with _statements(name) as seen:
            work()
        return counter.done(), sum(sql.startswith(_STATEMENTS) for sql in seen)


if __name__ == "__main__":
    say(measure(*map(int, sys.argv[1:4])))
