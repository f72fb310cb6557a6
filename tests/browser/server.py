"""The real web server in its own process, with its own registry."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
START_ATTEMPTS: Final = 300


@dataclass(frozen=True)
class Server:
    """The URL of a server, and the paths of its submissions by the name of their state."""

    base: str
    submissions: dict[str, str]


def free_port() -> int:
    """Return a port of loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """Create a registry in ``folder``, fill it, and serve it with uvicorn until the context ends."""
    port = free_port()
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("VSKILL_", "DATABASE_URL"))},
        "DJANGO_SETTINGS_MODULE": "vskill.settings",
        "VSKILL_DATA_DIR": str(folder),
        "VSKILL_LOG_LEVEL": "WARNING",
        # Pages offer mails; nothing here sends any.
        "VSKILL_EMAIL_URL": "smtp://127.0.0.1:9",
        "VSKILL_EMAIL_FROM": "vskill@skills.example.org",
        "PORT": str(port),
    }

    def program(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    program("manage.py", "migrate", "--verbosity", "0")
    submissions: dict[str, str] = json.loads(program("-m", "tests.browser.populate").splitlines()[-1])
    server = ["-m", "uvicorn", "vskill.asgi:application", "--port", str(port), "--log-level", "warning"]
    log = folder / "server.log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, *server, "--lifespan", "off"], cwd=ROOT, env=variables, stderr=written
        )
    try:
        base = f"http://127.0.0.1:{port}"
        wait_until_it_answers(base, process)
        yield Server(base, submissions)
        assert process.poll() is None, f"the server ended by itself:\n{log.read_text()}"
        assert "Traceback" not in log.read_text(), log.read_text()
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_until_it_answers(base: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until ``/healthz`` answers with any status; fail if the process ends before that."""
    for _attempt in range(START_ATTEMPTS):
        try:
            with urllib.request.urlopen(f"{base}/healthz", timeout=5):  # noqa: S310 - our own address
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            try:
                process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            break
    raise AssertionError(f"the server at {base} did not come up")
