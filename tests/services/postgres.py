"""Run a command with a temporary PostgreSQL server: ``python -m tests.services.postgres -- COMMAND``.

The server listens only on loopback, on a free port, with a random password. Its files are in a temporary folder, which
is deleted afterwards. The command gets its address in ``DATABASE_URL``. If root starts it, the server runs as
``postgres`` or ``nobody``, because PostgreSQL refuses root.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

import psycopg

START_SECONDS: Final = 60
STOP_SECONDS: Final = 30
PORTS_TRIED: Final = 3
USER: Final = "vskill"

# The data is deleted in a minute, and durability would cost half of the time. Nothing looks at the tables by itself: it
# would sometimes take note that one is empty just before a test fills it, and then plans are made for an empty table.
THROWAWAY_SETTINGS: Final = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}
SETTINGS: Final = {
    "max_connections": "100",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "log_min_messages": "warning",
}


class PostgresUnavailable(Exception):
    """Raised with the reason why no PostgreSQL server could be started, and what to install."""


def find_binaries() -> Path:
    """Return the folder that holds ``initdb`` and ``postgres``, the newest version first.

    Raises PostgresUnavailable when there is none. Debian keeps servers out of PATH.
    """
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version_of, reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise PostgresUnavailable("no PostgreSQL server was found; on Debian: apt-get install postgresql-15")


@contextlib.contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[str]:
    """Start a server, yield its ``DATABASE_URL``, then stop it and delete its files.

    With ``durable``, it writes as in production: a commit waits until it would survive a power cut.
    """
    binaries = find_binaries()
    with tempfile.TemporaryDirectory(prefix="vskill-postgres-") as name:
        folder, account = Path(name), _account()
        if account:
            os.chown(folder, account["user"], account["group"])
        password = secrets.token_urlsafe(24)
        _create_cluster(binaries, folder, password, account)
        settings = SETTINGS if durable else SETTINGS | THROWAWAY_SETTINGS
        server, port = _start(binaries, folder, password, account, settings)
        try:
            yield f"postgres://{USER}:{password}@127.0.0.1:{port}/{USER}"
        finally:
            _stop(server)


def run_with_server(command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Run ``command`` with a server and return its exit code; a signal ends the command, then the server."""
    with _signals_as_exit(), postgres_server() as url:
        child = subprocess.Popen(command, env={**os.environ, **(environment or {}), "DATABASE_URL": url})
        try:
            return child.wait()
        except KeyboardInterrupt:
            # The terminal sent Ctrl-C to the command too, which may still print a summary.
            _wait_or_kill(child)
            raise
        except SystemExit:
            child.terminate()
            _wait_or_kill(child)
            raise


def main() -> int:
    """Run the command on the command line, and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.services.postgres", description=__doc__)
    parser.add_argument("command", nargs="+", help="the command, after --")
    try:
        return run_with_server(parser.parse_args().command)
    except PostgresUnavailable as error:
        print(f"PostgreSQL is not available: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _version_of(folder: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in folder.parent.name.split(".") if part.isdigit())


def _account() -> dict[str, Any]:
    """Return the arguments of Popen that switch to an account that PostgreSQL accepts."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise PostgresUnavailable("root may not run it, and there is neither a user postgres nor nobody to run it as")


def _create_cluster(binaries: Path, folder: Path, password: str, account: dict[str, Any]) -> None:
    password_file = folder / "password"
    password_file.write_text(password)
    if account:
        os.chown(password_file, account["user"], account["group"])
    command = [str(binaries / "initdb"), "--pgdata", str(folder / "data"), "--username", USER]
    command += ["--pwfile", str(password_file)]
    command += ["--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"]
    # Linguistic, as on most servers. With C, the tests would not notice a key column without its own collation.
    linguistic = [*command, "--locale-provider", "icu", "--icu-locale", "en-US"]
    problem = ""
    for attempt in (linguistic, command):
        done = subprocess.run(attempt, cwd=folder, capture_output=True, text=True, check=False, **account)
        if done.returncode == 0:
            password_file.unlink()
            return
        problem = done.stderr.strip()
    raise PostgresUnavailable(f"initdb failed: {problem}")


def _start(
    binaries: Path, folder: Path, password: str, account: dict[str, Any], settings: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes], int]:
    log = folder / "server.log"
    for _attempt in range(PORTS_TRIED):
        # A race: another process may take the port before the server starts.
        port = _free_port()
        command = [str(binaries / "postgres"), "-D", str(folder / "data"), "-p", str(port)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        if setpriv := shutil.which("setpriv"):
            # After a SIGKILL nothing here can clean up, so the kernel signals the server.
            command = [setpriv, "--pdeathsig", "INT", "--", *command]
        with log.open("wb") as output:
            server = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                **account,
            )
        try:
            if _create_database(server, port, password):
                return server, port
        except BaseException:
            _stop(server)
            raise
    raise PostgresUnavailable(f"the server ended at once: {log.read_text(errors='replace').strip()}")


def _create_database(server: subprocess.Popen[bytes], port: int, password: str) -> bool:
    """Wait until the server accepts connections and create the database; return False if the server ends first."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with psycopg.connect(
                host="127.0.0.1", port=port, user=USER, password=password, dbname="postgres", autocommit=True
            ) as connection:
                connection.execute(f'CREATE DATABASE "{USER}"')
                return True
        except psycopg.OperationalError as error:
            if time.monotonic() > deadline:
                raise PostgresUnavailable(f"no connection within {START_SECONDS} s: {error}") from error
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(0.05)
            return False


def _wait_or_kill(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGINT)
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _signals_as_exit() -> Iterator[None]:
    """Turn the first SIGTERM or SIGHUP into an exception, so that with blocks clean up, and ignore further ones."""
    caught = (signal.SIGTERM, signal.SIGHUP)

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        for each in caught:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = {each: signal.signal(each, leave) for each in caught}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


if __name__ == "__main__":
    sys.exit(main())
