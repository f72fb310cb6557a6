"""What starts on a database without tables ends in one line, and so does a consumer that can receive nothing."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.end_to_end.processes import ROOT, Instance, bare_instance, free_port, instance

pytestmark = pytest.mark.slow

UVICORN = ["-m", "uvicorn", "vskill.asgi:application", "--lifespan", "off", "--log-level", "warning", "--port"]


def ended(installation: Instance, *arguments: str) -> tuple[int, list[str]]:
    """Run Python to its end and return its exit code and the lines that it wrote."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=installation.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_everything_says_where_it_looked_and_what_to_run(tmp_path: Path) -> None:
    with bare_instance(tmp_path / "data") as installation:
        place = installation.database_url.rpartition("@")[2].removeprefix("sqlite:///")
        lines = {
            # As cron runs it.
            "recover_stuck": ["manage.py", "recover_stuck", "-v", "0"],
            "consume": ["manage.py", "consume"],
            "web": [*UVICORN, str(free_port())],
            # One of Django's own, which first says a line of its own.
            "createsuperuser": ["manage.py", "createsuperuser", "--no-input", "--username", "a", "--email", "a@b.c"],
        }
        for name, arguments in lines.items():
            code, said = ended(installation, *arguments)
            assert code == 1, (name, said)
            assert f"{place} has no tables. Run: manage.py migrate." in said[-1], (name, said)
            assert f"VSKILL_DATA_DIR (here {installation.data_dir})" in said[-1]
            assert len(said) == 1 or name == "createsuperuser", said
            assert "Traceback" not in "".join(said)
        installation.manage("migrate", "-v", "0")
        assert ended(installation, "manage.py", "recover_stuck", "-v", "0") == (0, [])


def execute(installation: Instance, sql: str) -> None:
    if installation.database_url.startswith("sqlite"):
        path = installation.database_url.removeprefix("sqlite:///")
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(sql)
        return
    with psycopg.connect(installation.database_url) as connection:
        connection.execute(sql.encode())


def test_a_consumer_that_is_run_once_and_can_receive_nothing_has_failed(tmp_path: Path) -> None:
    with instance(tmp_path / "data") as installation:
        assert ended(installation, "manage.py", "consume", "--once")[0] == 0
        execute(installation, "ALTER TABLE submissions_queuemessage RENAME TO elsewhere")
        code, said = ended(installation, "manage.py", "consume", "--once")
        assert code == 1
        assert "CommandError: No work could be taken from default: " in "\n".join(said)
        assert "Traceback" not in "".join(said)
