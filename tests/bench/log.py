"""Measure whether the log of verdicts costs more the longer it is: 1,000 entries beside 100,000, on one database."""

from __future__ import annotations

from typing import Final

from tests.bench.rows import Row, at_most
from tests.bench.workers import bench_database, last_line, our_module, run_to_end

OURS: Final = our_module("tests.bench.log_ours")
_FEW: Final = 1_000
_MANY: Final = 100_000
_ROUNDS: Final = 60
# A proof of a tree that is a hundred times as large has 1.7 times as many hashes, each of one or two stored ones.
_MORE_WORK: Final = 2.0
_LONGER: Final = 2.5
# Whatever the size, so that a time that is too long for a while is no excuse.
_STATEMENTS: Final = 10


def measure_log(database: str) -> list[Row]:
    """Return what each work on the log takes in a long one, in times of what it takes in a short one of the same run.

    The work of the database is that of its instructions on SQLite, and the rows that it read on PostgreSQL.
    """
    area = f"log, {database}, {_MANY:,} entries"
    with bench_database(database) as environment:
        told = last_line(run_to_end([*OURS, str(_FEW), str(_MANY), str(_ROUNDS)], environment))
    rows = []
    for what, found in told.items():
        few, many = found["few"], found["many"]
        rows.append(Row(area, f"{what}, median", many["ms"], "ms"))
        rows.append(at_most(area, f"{what}, against {_FEW:,} entries", many["ms"] / few["ms"], _LONGER))
        rows.append(at_most(area, f"{what}, work of the database", many["work"] / max(1, few["work"]), _MORE_WORK))
        rows.append(at_most(area, f"{what}, statements", many["statements"], _STATEMENTS, ""))
    return rows
