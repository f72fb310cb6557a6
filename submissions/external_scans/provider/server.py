"""Take dispatches over HTTP: signed ones, of a known environment, each once."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from submissions.external_scans.provider.worker import Job
from submissions.external_scans.signing import (
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    is_recent,
    is_signed,
    read_timestamp,
)

MAX_BODY: Final = 64 * 1024
_MOST_REMEMBERED: Final = 1_000
_NEEDED: Final = ("scanId", "environment", "archiveUrl", "archiveSha256", "resultUrl")
_ADDRESSES: Final = ("archiveUrl", "resultUrl")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, place: tuple[str, int], secrets: Mapping[str, str], take: Callable[[Job], bool]) -> None:
        super().__init__(place, _Handler)
        self.secrets = secrets
        self.take = take
        self.taken: OrderedDict[str, None] = OrderedDict()
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    # Seconds that a client may be silent.
    timeout = 20

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 10 and int(length) <= MAX_BODY):
            self._answer(413, "The body has no length, or is too large.")
            return
        status, words = self._take(self.rfile.read(int(length)))
        self._answer(status, words)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server gives it
        """Log nothing: what is taken is logged by the worker."""

    def _take(self, body: bytes) -> tuple[int, str]:
        document = _read(body)
        secret = self.server.secrets.get(str(document.get("environment"))) if document else None
        timestamp = read_timestamp(self.headers.get(TIMESTAMP_HEADER, ""))
        signature = self.headers.get(SIGNATURE_HEADER, "")
        if document is None or not secret or timestamp is None or not is_signed(secret, timestamp, body, signature):
            return 401, "The signature is missing or wrong."
        if not is_recent(timestamp, time.time()):
            return 401, "This was signed too long ago."
        if any(not isinstance(document.get(name), str) for name in _NEEDED) or any(
            not document[name].startswith(("http://", "https://")) for name in _ADDRESSES
        ):
            return 400, "A field is missing."
        with self.server.lock:
            if document["scanId"] in self.server.taken:
                return 202, "Taken before."
            if not self.server.take(Job(document, secret)):
                return 503, "Too many wait; try again later."
            self.server.taken[document["scanId"]] = None
            if len(self.server.taken) > _MOST_REMEMBERED:
                self.server.taken.popitem(last=False)
        return 202, "Taken."

    def _answer(self, status: int, words: str) -> None:
        content = words.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)


def _read(body: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


@contextmanager
def dispatches(host: str, port: int, secrets: Mapping[str, str], take: Callable[[Job], bool]) -> Iterator[int]:
    """Serve on ``host`` and ``port`` (0 for a free one) during the body, and yield the port.

    ``secrets`` are those of the environments by name. ``take`` gets each dispatch once, on another thread, and returns
    whether it was taken.
    """
    server = _Server((host, port), secrets, take)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
