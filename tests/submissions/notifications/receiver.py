"""A receiver of webhooks on loopback, an asyncio server that speaks real https; it can be slow, huge or hostile."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from tests.submissions.source.https_host import CERTIFICATE, KEY
from vskill.environments import WorkerEnv

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Taken:
    """One request: its path, its headers in small letters, and its body."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """What it was sent, and how it answers each path; others with 204. ``most_at_once`` is by path."""

    port: int = 0
    taken: list[Taken] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    at_once: dict[str, int] = field(default_factory=dict)
    most_at_once: dict[str, int] = field(default_factory=dict)

    def url(self, path: str = "/hook") -> str:
        return f"https://127.0.0.1:{self.port}{path}"

    def trusted_by(self, env: WorkerEnv) -> WorkerEnv:
        """Return an environment that lets webhooks go to this receiver and trusts its certificate."""
        hosts = (f"127.0.0.1:{self.port}",)
        return replace(env, policy=replace(env.policy, webhook_private_hosts=hosts, source_ca_file=str(CERTIFICATE)))

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            path = head[0].split(" ")[1]
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.taken.append(Taken(path, headers, body))
            self.at_once[path] = self.at_once.get(path, 0) + 1
            self.most_at_once[path] = max(self.most_at_once.get(path, 0), self.at_once[path])
            try:
                await self.answers.get(path, says(204))(writer)
                await writer.drain()
            finally:
                self.at_once[path] -= 1
        writer.close()


def says(status: int, text: str = "", **headers: str) -> Answer:
    """Return an answer with this status, text and headers."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        body = text.encode()
        writer.write(f"HTTP/1.1 {status} Said\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body)

    return answer


async def drips(writer: asyncio.StreamWriter) -> None:
    """Send the head of an answer a letter at a time, and never end."""
    for letter in "HTTP/1.1 200 OK\r\nX-Slow: " + "a" * 100_000:
        writer.write(letter.encode())
        await writer.drain()
        await asyncio.sleep(0.05)


async def floods(writer: asyncio.StreamWriter) -> None:
    """Answer with status 200 and a body without end."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    # A transport of TLS neither waits nor fails once the other side has gone.
    while not writer.is_closing():
        writer.write(b"<script>" * 8192)
        await writer.drain()
        await asyncio.sleep(0)


async def stays_silent(writer: asyncio.StreamWriter) -> None:
    """Answer nothing."""
    await asyncio.sleep(3600)


@contextmanager
def served(start: Callable[[], Coroutine[Any, Any, asyncio.Server]]) -> Iterator[int]:
    """Run the server that ``start`` returns on a thread of its own, and yield its port."""
    loop = asyncio.new_event_loop()
    # Handshakes that fail are what some tests want.
    loop.set_exception_handler(lambda _loop, _context: None)

    async def end(server: asyncio.Server) -> None:
        server.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(start(), loop).result()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Run a receiver on a thread of its own."""
    one = Receiver()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    with served(lambda: asyncio.start_server(one.handle, "127.0.0.1", 0, ssl=context)) as one.port:
        yield one
