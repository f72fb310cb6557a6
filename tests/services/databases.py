"""Run pytest on SQLite, then on PostgreSQL: ``python -m tests.services.databases [--only NAME] -- PYTEST ARGUMENTS``.

The first run has all tests, the second those that depend on the database. Both happen even if the first fails; the
exit code is that of the first failure. Without a PostgreSQL server, the reason is printed before the tests and again
after them; with ``CI=true`` that is a failure, because CI must test both. Neither run touches the data of an instance
in this folder. What they write stays in memory where there is room for it, unless ``TMPDIR`` names a place.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.services import database_tests, earlier_runs, memory
from tests.services.postgres import PostgresUnavailable, find_binaries, run_with_server

INTERRUPTED: Final = 2
# Each run has some processes of its own and starts a few hundred more. Where no bytecode is kept, each compiles what it
# imports: for a command of manage.py that is twice the time.
KEEP_BYTECODE: Final = {"PYTHONDONTWRITEBYTECODE": ""}
NAMES: Final = ("sqlite", "postgres")


def main() -> int:
    """Run the suite as the command line asks, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.services.databases", description=__doc__)
    parser.add_argument("--only", choices=NAMES, help="run on this database alone")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, after --")
    options = parser.parse_args()
    names = [options.only] if options.only else list(NAMES)

    notes: list[str] = []
    missing = _why_no_postgres() if "postgres" in names else None
    if missing:
        print(f"PostgreSQL: not tested, {missing}", file=sys.stderr, flush=True)
        if names == ["postgres"] or os.environ.get("CI") == "true":
            return 1
        names.remove("postgres")
        notes.append(f"PostgreSQL: not tested, {missing}")

    failure = 0
    for name in names:
        print(f"\n=== tests on {name} ===", flush=True)
        first = [] if name == names[0] else ["-p", database_tests.__name__]
        with memory.temporary_files():
            code = _run(name, [*first, *options.pytest], notes)
        notes.append(f"{name}: {'passed' if code == 0 else f'FAILED (pytest exit code {code}), see above'}")
        failure = failure or code
        if code == INTERRUPTED:
            break
    return failure


def _why_no_postgres() -> str | None:
    try:
        find_binaries()
    except PostgresUnavailable as error:
        return str(error)
    return None


def _run(name: str, arguments: Sequence[str], notes: Sequence[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-p", earlier_runs.__name__, *arguments]
    with tempfile.TemporaryDirectory(prefix="vskill-tests-") as folder:
        # Set explicitly, because the .env of a developer may name another database.
        environment = {"VSKILL_TEST_DATA_DIR": folder, earlier_runs.VARIABLE: "\n".join(notes), **KEEP_BYTECODE}
        if name == "postgres":
            return run_with_server(command, environment)
        environment["DATABASE_URL"] = f"sqlite:///{Path(folder) / 'vskill.sqlite3'}"
        return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
