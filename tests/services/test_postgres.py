"""The temporary server works, and is gone afterwards however the command ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.parse
from pathlib import Path

import psycopg
import pytest

from tests.services.postgres import PostgresUnavailable, find_binaries, postgres_server, run_with_server


@pytest.fixture(autouse=True)
def _server_installed() -> None:
    try:
        find_binaries()
    except PostgresUnavailable as reason:
        pytest.skip(str(reason))


def _refuses_connections(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.OperationalError:
        return True
    return False


def test_the_server_answers_on_loopback_and_is_gone_afterwards() -> None:
    with postgres_server() as url:
        with psycopg.connect(url) as connection:
            row = connection.execute("SELECT current_setting('data_directory')").fetchone()
        assert row is not None
        folder = Path(row[0])
        assert urllib.parse.urlsplit(url).hostname == "127.0.0.1"
        assert folder.is_dir()
    assert not folder.exists()
    assert _refuses_connections(url)


def test_the_default_collation_is_linguistic_so_that_a_key_column_needs_its_own() -> None:
    with postgres_server() as url, psycopg.connect(url) as connection:
        row = connection.execute("SELECT 'a' < 'B', 'a' < 'B' COLLATE \"C\"").fetchone()
    assert row == (True, False)


def test_the_exit_code_of_the_command_is_returned() -> None:
    assert run_with_server([sys.executable, "-c", "raise SystemExit(7)"]) == 7


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda sent: sent.name)
def test_a_signal_ends_the_command_and_the_server(sent: signal.Signals) -> None:
    program = "import os, signal; print(os.environ['DATABASE_URL'], flush=True); signal.pause()"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.services.postgres", "--", sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as runner:
        try:
            assert runner.stdout is not None
            url = runner.stdout.readline().strip()
            with psycopg.connect(url) as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
            if sent is signal.SIGINT:
                # A terminal sends Ctrl-C to the whole group.
                os.killpg(runner.pid, sent)
            else:
                runner.send_signal(sent)
            # The command has our pipe open too, so the output ends only when the command ends.
            assert runner.stdout.read() == ""
        except BaseException:
            # Otherwise the wait at the end of the block would never return.
            os.killpg(runner.pid, signal.SIGKILL)
            raise
    assert runner.returncode == 128 + sent
    assert _refuses_connections(url)
