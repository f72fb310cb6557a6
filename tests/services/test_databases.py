"""The suite runs on both databases, and the last run hides neither a failure nor a missing server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.services import databases
from tests.services.postgres import PostgresUnavailable, find_binaries

FAILS_ON = """
import os
import pytest

@pytest.mark.database
def test_this_database():
    assert not os.environ["DATABASE_URL"].startswith("{scheme}")
"""


def _run_suite(folder: Path, fails_on: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(FAILS_ON.format(scheme=fails_on))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = database\n")
    command = [sys.executable, "-m", "tests.services.databases", "--"]
    command += ["-p", "no:django", "-p", "no:cacheprovider", "-c", str(folder / "pytest.ini"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def _server_installed() -> None:
    try:
        find_binaries()
    except PostgresUnavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.slow
@pytest.mark.usefixtures("_server_installed")
@pytest.mark.parametrize(
    ("fails_on", "exit_code", "first_ended"),
    [
        ("sqlite", 1, "sqlite: FAILED (pytest exit code 1)"),
        ("postgres", 1, "sqlite: passed"),
        ("nothing", 0, "sqlite: passed"),
    ],
)
def test_a_failure_on_either_database_fails_the_whole_and_the_last_summary_tells_how_the_first_run_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_on: str, exit_code: int, first_ended: str
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    done = _run_suite(tmp_path, fails_on)
    assert done.returncode == exit_code
    assert done.stdout.count("1 failed") + done.stdout.count("1 passed") == 2
    last_run = done.stdout.partition("=== tests on postgres ===")[2]
    assert first_ended in last_run
    assert ("1 failed" if fails_on == "postgres" else "1 passed") in last_run.splitlines()[-1]
    # Other processes of the run need not compile again what one has.
    assert list((tmp_path / "__pycache__").iterdir())


@pytest.mark.parametrize("arguments", [[], ["--only", "postgres"]], ids=["both", "postgres"])
def test_ci_does_not_pass_without_a_postgres_server(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    def none_installed() -> Path:
        raise PostgresUnavailable("there is none here")

    monkeypatch.setattr(databases, "find_binaries", none_installed)
    monkeypatch.setattr(sys, "argv", ["databases", *arguments])
    monkeypatch.setenv("CI", "true")
    assert databases.main() == 1
    assert "PostgreSQL: not tested, there is none here" in capfd.readouterr().err
