"""A server in a process of its own, and public clients that run against it unmodified."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from django.db import connection

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BINARIES = HERE / "node_modules" / ".bin"
# Of a package of its own, because two of one name share none.
OLDER_CLAWHUB = HERE / "older_clawhub/node_modules/.bin/clawhub"
# Of another, with the Node that it wants: 191 MB.
NEWER_SKILLS = HERE / "newer_skills/node_modules/.bin"
# Of another, because it takes 235 MB.
CLAUDE = HERE / "claude_code/node_modules/@anthropic-ai/claude-code-linux-x64/claude"
# Of another, because it takes 424 MB.
CODEX = HERE / "codex/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
# Into an environment of its own, by `make apm`.
APM = ROOT / ".engines/apm/bin/apm"
CLIENT_SECONDS = 90


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder, and skip it with the reason where the clients are not installed."""
    missing = [name for name in ("node", "git") if shutil.which(name) is None]
    missing += [f"{BINARIES / name} (make clients)" for name in ("clawhub", "skills") if not (BINARIES / name).exists()]
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.clients)
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"not installed: {', '.join(missing)}"))


@dataclass(frozen=True)
class LiveServer:
    """A running server and its address."""

    url: str


def _database_url() -> str:
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    login = f"{quote(settings['USER'])}:{quote(settings['PASSWORD'])}"
    return f"postgres://{login}@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"


@pytest.fixture(autouse=True)
def _committed(transactional_db: None) -> None:
    """Commit what a test writes, because another process reads it."""


@pytest.fixture(scope="session")
def server(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Run the web server as a process on the tests' database, on a port of loopback that nobody else can take."""
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        log = folder / "server.log"
        variables = {
            "DATABASE_URL": _database_url(),
            "DJANGO_SETTINGS_MODULE": "vskill.settings",
            "VSKILL_DATA_DIR": str(folder / "data"),
            "VSKILL_HOSTS": "127.0.0.1",
            "VSKILL_PUBLIC_URL": url,
        }
        command = [sys.executable, "-m", "uvicorn", "vskill.asgi:application", "--fd", str(listening.fileno())]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, "--no-access-log"],
                cwd=ROOT,
                env={**os.environ, **variables},
                pass_fds=[listening.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
    # The server holds the port from here on; whoever connects waits until it answers.
    try:
        yield LiveServer(url)
    finally:
        process.terminate()
        process.wait(30)
        print(log.read_text(errors="replace"))  # noqa: T201 - pytest shows it beside a failure


class ClientMachine:
    """A home directory and a working directory in which a client knows nothing but the registry's address."""

    def __init__(self, home: Path, registry: str) -> None:
        self.home = home
        self.work = home / "work"
        self.work.mkdir(parents=True)
        tools = home / "bin"
        tools.mkdir()
        # npx would ask the npm registry; here it runs what is installed.
        shim = tools / "npx"
        shim.write_text(f'#!/bin/sh\nname="$1"; shift; exec "{BINARIES}/$name" "$@"\n')
        shim.chmod(0o755)
        if OLDER_CLAWHUB.exists():
            (tools / "older-clawhub").symlink_to(OLDER_CLAWHUB)
        if CLAUDE.exists():
            (tools / "claude").symlink_to(CLAUDE)
        if CODEX.exists():
            (tools / "codex").symlink_to(CODEX)
        if APM.exists():
            (tools / "apm").symlink_to(APM)
        self.environment = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOME": str(home),
            "CLAWHUB_REGISTRY": registry,
            "CLAWHUB_SITE": registry,
            "CLAWHUB_WORKDIR": str(self.work),
            "CLAWHUB_DISABLE_TELEMETRY": "1",
            "DISABLE_TELEMETRY": "1",
            "SKILLS_API_URL": registry,
            # A client that ignores the address it was given ends at a port where nobody listens.
            "HTTPS_PROXY": "http://127.0.0.1:9",
            # Claude Code sends plain HTTP through that as well.
            "NO_PROXY": "127.0.0.1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "NO_COLOR": "1",
        }

    def use_newer_skills(self) -> None:
        """Let ``npx skills`` run the version that wants a newer Node, by that."""
        shim = self.home / "bin/npx"
        newer = f'[ "$1" != skills ] || {{ shift; exec "{NEWER_SKILLS}/node" "{NEWER_SKILLS}/skills" "$@"; }}\n'
        first, rest = shim.read_text().split("\n", 1)
        shim.write_text(f"{first}\n{newer}{rest}")

    def shell(self, command: str, *, code: int = 0, without: tuple[str, ...] = ()) -> str:
        """Run a line as a person would paste it, and return what it printed; it must end with ``code``."""
        environment = {name: value for name, value in self.environment.items() if name not in without}
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=CLIENT_SECONDS,
            check=False,
        )
        assert done.returncode == code, f"{command}\nended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    @contextmanager
    def started(self, command: str) -> Iterator[subprocess.Popen[str]]:
        """Start a program that waits for something, and kill it at the end where it still runs."""
        process = subprocess.Popen(
            ["/bin/bash", "-c", f"exec {command}"],
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def machine(server: LiveServer, tmp_path: Path) -> ClientMachine:
    """Return a client's machine that knows the server."""
    return ClientMachine(tmp_path / "home", server.url)
