"""A git host on loopback that speaks real https."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

FIXTURES = Path(__file__).with_name("fixtures")
# Made for these tests, valid for git.test.example and 127.0.0.1 until 2126; the key protects nothing.
CERTIFICATE = FIXTURES / "git-test.pem"
KEY = FIXTURES / "git-test.key"


# What a handler writes for a path that begins with the key, in the place of git.
Answer = Callable[[BaseHTTPRequestHandler, bytes], None]


@dataclass
class HttpsHost:
    """The port of the host, and every path that was requested from it; a host may know only the first protocol.

    ``logins`` says for the beginning of a path what the header Authorization has to be; ``sent`` is what it was, for
    every request. ``during`` is called while a client waits for its answer. ``clients`` are the ports of its clients.
    ``pages`` are the status and the Location for whole paths, which git does not ask for. ``git_bytes`` is how much
    git has answered.
    """

    port: int
    logins: dict[str, str] = field(default_factory=dict)
    sent: list[tuple[str, str]] = field(default_factory=list)
    during: Callable[[], None] = lambda: None
    clients: set[int] = field(default_factory=set)
    answers: dict[str, Answer] = field(default_factory=dict)
    pages: dict[str, tuple[int, str]] = field(default_factory=dict)
    speaks_version_2: bool = True
    requests: list[str] = field(default_factory=list)
    git_bytes: int = 0


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = root
        self.host = HttpsHost(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect, which several tests do on purpose."""


class _Handler(BaseHTTPRequestHandler):
    """Serves the repositories below ``root``; ``/moved/`` redirects and ``/private/`` wants a password."""

    server: _Server

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server gives it
        """Print nothing."""

    def _answer(self) -> None:
        host, sent = self.server.host, self.headers.get("Authorization", "")
        host.requests.append(self.path)
        host.sent.append((self.path, sent))
        host.clients.add(self.client_address[1])
        host.during()
        if any(self.path.startswith(beginning) and sent != login for beginning, login in host.logins.items()):
            self._ask_for_a_login()
            return
        if self.path in host.pages:
            status, location = host.pages[self.path]
            self.send_response(status)
            self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        for beginning, answer in self.server.host.answers.items():
            if self.path.startswith(beginning):
                answer(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))
                return
        if self.path.startswith("/moved/"):
            self.send_response(301)
            self.send_header("Location", self.path.replace("/moved/", "/a/"))
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path.startswith("/private/"):
            self._ask_for_a_login()
        else:
            self._run_git()

    def _ask_for_a_login(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _run_git(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", "") if self.server.host.speaks_version_2 else "",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": parts.path,
            "QUERY_STRING": parts.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        answer = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, content = answer.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        host = self.server.host
        host.git_bytes += len(content)
        self.wfile.write(content)


@contextmanager
def https_host(root: Path) -> Iterator[HttpsHost]:
    """Serve the bare repositories below ``root`` over https on loopback."""
    server = _Server(root)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    # The thread of each connection does its handshake, so that a silent client does not block the others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.host
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def silent_host() -> Iterator[socket.socket]:
    """Listen on loopback and never answer; the caller accepts the connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        yield listener


def port_of(listener: socket.socket) -> int:
    """Return the port that a socket listens on."""
    return cast("tuple[str, int]", listener.getsockname())[1]
