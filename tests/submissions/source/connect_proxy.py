"""A real proxy on loopback, for tunnels and for requests of http: the only way out of the network of a test."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.submissions.source.https_host import CERTIFICATE, KEY, port_of


@dataclass
class ConnectProxy:
    """What was asked of the proxy, and by which ports it went on.

    ``heads`` are the headers of each request, ``targets`` the places that were asked for. ``login`` is what
    Proxy-Authorization has to be ('' for anything), ``status`` what it answers in the place of a tunnel. Every name
    leads to this machine. Where it speaks https, ``secure_port`` is that of
    its https, and ``port`` that of its http.
    """

    port: int
    targets: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)
    login: str = ""
    status: int = 200
    secure_port: int = 0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.secure_port}" if self.secure_port else f"http://127.0.0.1:{self.port}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy = ConnectProxy(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server gives it
        """Print nothing."""

    def _let_through(self, target: str) -> bool:
        proxy = self.server.proxy
        proxy.targets.append(target)
        proxy.heads.append(str(self.headers))
        wrong = proxy.login and self.headers.get("Proxy-Authorization") != proxy.login
        if wrong or proxy.status != 200:
            self.send_error(407 if wrong else proxy.status)
            return False
        return True

    def do_GET(self) -> None:
        self._hand_on()

    def do_POST(self) -> None:
        self._hand_on()

    def _hand_on(self) -> None:
        parts = urlsplit(self.path)
        if not self._let_through(parts.netloc):
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        kept = {name: value for name, value in self.headers.items() if not name.lower().startswith("proxy-")}
        onward = HTTPConnection("127.0.0.1", parts.port)
        with closing(onward):
            onward.request(self.command, parts.path, body or None, kept)
            self.server.proxy.ports.add(onward.sock.getsockname()[1])
            answer = onward.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers.get("Content-Type", "text/plain"))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def do_CONNECT(self) -> None:
        proxy = self.server.proxy
        if not self._let_through(self.path):
            return
        with socket.create_connection(("127.0.0.1", int(self.path.rpartition(":")[2]))) as onward:
            proxy.ports.add(onward.getsockname()[1])
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=_copy, args=(onward, self.connection))
            back.start()
            _copy(self.connection, onward)
            back.join()
        self.close_connection = True


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while received := source.recv(65536):
            sink.sendall(received)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def connect_proxy() -> Iterator[ConnectProxy]:
    """Run the proxy on a port of loopback."""
    server = _Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@asynccontextmanager
async def over_https(proxy: ConnectProxy) -> AsyncIterator[ConnectProxy]:
    """Let the proxy be reached over https during the body, with the certificate of the tests."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    open_ones: set[asyncio.StreamWriter] = set()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward, to_proxy = await asyncio.open_connection("127.0.0.1", proxy.port)
        open_ones.update((writer, to_proxy))
        await asyncio.gather(_stream(reader, to_proxy), _stream(onward, writer))

    server = await asyncio.start_server(forward, "127.0.0.1", 0, ssl=context)
    proxy.secure_port = port_of(server.sockets[0])
    try:
        yield proxy
    finally:
        proxy.secure_port = 0
        server.close()
        for one in open_ones:
            one.transport.abort()


async def _stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while received := await reader.read(65536):
            writer.write(received)
            await writer.drain()
    writer.close()
