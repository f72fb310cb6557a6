"""Server processes of one installation count a client together, and a client cannot make somebody else of itself."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import ROOT, Instance, free_port, instance, until

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

# A process tells the others after each tenth request of a client.
LIMIT, PART = 160, 10


@contextlib.contextmanager
def server(installation: Instance, port: int = 0) -> Iterator[int]:
    """Run a web server as ``up`` does, on ``port`` or a free one, and yield its port once it answers."""
    port = port or free_port()
    command = [sys.executable, "-m", "uvicorn", "vskill.asgi:application", "--lifespan", "off", "--no-proxy-headers"]
    with subprocess.Popen(
        [*command, "--log-level", "warning", "--port", str(port)], cwd=ROOT, env=installation.environment()
    ) as process:
        try:
            until(lambda: process.poll() is not None or ask(port, "/healthz")[0] != 0)
            assert process.poll() is None
            yield port
        finally:
            process.terminate()


def ask(port: int, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
    """GET a path; return status, headers and text; status 0 means no answer."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        try:
            connection.request("GET", path, headers={name.replace("_", "-"): line for name, line in headers.items()})
            response = connection.getresponse()
            return response.status, dict(response.headers), response.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, {}, ""


def until_refused(port: int, **headers: str) -> int:
    """Read until that is refused; return how often it was not."""
    for served in range(LIMIT + 1):
        status = ask(port, "/api/v1/skills", **headers)[0]
        if status == 429:
            return served
        assert status == 200
    raise AssertionError("nothing was refused")


def test_two_servers_count_a_client_together(tmp_path: Path) -> None:
    limits = {"VSKILL_LIMIT_READS": f"{LIMIT}/day", "VSKILL_TRUSTED_PROXIES": "none"}
    with (
        instance(tmp_path / "data", **limits) as installation,
        server(installation) as first,
        server(installation) as second,
    ):
        assert until_refused(first) == LIMIT
        # It learns of the other's count with the first part that it tells; how fast is up to the machine.
        assert PART <= until_refused(second) < LIMIT // 2
        status, headers, text = ask(second, "/api/v1/submissions", X_Forwarded_For="203.0.113.7")
        assert status == 429
        assert json.loads(text)["error"] == "rate_limited"
        assert int(headers["Retry-After"]) > 0
        assert headers["X-RateLimit-Remaining"] == headers["RateLimit-Remaining"] == "0"
        [(count,)] = installation.rows("SELECT count FROM rate_limits_requestcount WHERE key LIKE 'reads/127.0.0.1/%'")
        assert LIMIT <= count < LIMIT * 2


def test_behind_a_trusted_proxy_clients_count_apart_and_from_the_right(tmp_path: Path) -> None:
    with instance(tmp_path / "data", VSKILL_LIMIT_READS=f"{LIMIT}/day") as installation, server(installation) as port:
        assert until_refused(port, X_Forwarded_For="203.0.113.7") == LIMIT
        assert ask(port, "/skills", X_Forwarded_For="198.51.100.1, 203.0.113.7")[0] == 429
        assert ask(port, "/skills", X_Forwarded_For="203.0.113.7, 198.51.100.1")[0] == 200
        assert ask(port, "/skills", Forwarded="for=203.0.113.7")[0] == 200
