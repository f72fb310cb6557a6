"""`up` asks whether everything lives under a name that is served, and understands whatever answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.vskill.absent_database import dead_port
from vskill.environments import WorkerEnv
from vskill.management.health_probe import HealthProbe, NotServed, served_name


@contextmanager
def server(answer: Callable[[str], tuple[int, bytes]]) -> Iterator[int]:
    """Serve what ``answer`` says for a Host header on a port of loopback, and yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answer(self.headers["Host"])
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield serving.server_address[1]
        finally:
            serving.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("hosts", "name"),
    [
        (("skills.example.org",), "skills.example.org"),
        (("skills.example.org", "localhost"), "localhost"),
        (("skills.example.org", "*"), "127.0.0.1"),
        (("skills.example.org", "127.0.0.1"), "127.0.0.1"),
        ((), None),
    ],
)
def test_a_name_that_is_served_is_chosen(hosts: tuple[str, ...], name: str | None) -> None:
    assert served_name(WorkerEnv("default", hosts)) == name


@pytest.mark.parametrize(
    ("status", "body", "dead"),
    [
        (200, b"", []),
        (503, b'{"dead": ["consumer", "scheduler"]}', ["consumer", "scheduler"]),
        (503, b"<h1>The database does not answer right now</h1>", ["database"]),
        (503, b"[]", ["database"]),
        (503, b"\xff", ["database"]),
        (500, b"", ["web (it answers 500)"]),
    ],
)
def test_every_answer_is_understood(status: int, body: bytes, dead: list[str]) -> None:
    with server(lambda _host: (status, body)) as port:
        probe = HealthProbe("127.0.0.1", port, [WorkerEnv("default", ("localhost",))])
        assert probe.dead_parts() == dead


def test_each_environment_is_asked_under_its_own_name() -> None:
    asked: list[str] = []

    def answer(host: str) -> tuple[int, bytes]:
        asked.append(host)
        return 200, b""

    with server(answer) as port:
        environments = [WorkerEnv("public", ("a.example.org",)), WorkerEnv("jobs"), WorkerEnv("b", ("b.example.org",))]
        assert HealthProbe("127.0.0.1", port, environments).dead_parts() == []
        assert asked == [f"a.example.org:{port}", f"b.example.org:{port}"]


def test_no_answer_is_a_web_server_that_is_not_up() -> None:
    assert HealthProbe("127.0.0.1", dead_port(), [WorkerEnv("default", ("localhost",))]).dead_parts() == ["web"]


def test_a_name_that_is_refused_is_said_at_once() -> None:
    with (
        server(lambda _host: (421, b"")) as port,
        pytest.raises(NotServed, match=r"skills\.example\.org.*VSKILL_HOSTS"),
    ):
        HealthProbe("127.0.0.1", port, [WorkerEnv("default", ("skills.example.org",))]).dead_parts()
