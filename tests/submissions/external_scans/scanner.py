"""A scanner on loopback as tests need it: it keeps what it is sent, and answers as it is told."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any

from django.test import Client

from submissions.external_scans.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from tests.submissions.source.https_host import CERTIFICATE, KEY
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now

SECRET = "a secret of the tests"


@dataclass
class Scanner:
    """What arrived, as pairs of headers and body, and the status that is answered."""

    url: str = ""
    status: int = 202
    taken: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)

    @property
    def documents(self) -> list[dict[str, Any]]:
        """Return the bodies that arrived."""
        return [json.loads(body) for _headers, body in self.taken]


@contextmanager
def scanner(scheme: str = "http") -> Iterator[Scanner]:
    """Run a scanner during the body, for https with the certificate of the tests."""
    told = Scanner()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.taken.append((dict(self.headers), body))
            self.send_response(told.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server gives it
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if scheme == "https":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE, KEY)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    told.url = f"{scheme}://127.0.0.1:{server.server_address[1]}/scan"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def with_scanners(env: WorkerEnv, **scanners: str) -> WorkerEnv:
    """Return the environment with external scanners and the secret of the tests."""
    policy = replace(env.policy, external_scanners=tuple(scanners.items()))
    return replace(env, policy=policy, secrets=MappingProxyType({"external_scans": SECRET}))


def post(
    client: Client,
    env: WorkerEnv,
    scan_id: str,
    document: Any,
    *,
    secret: str = SECRET,
    age: int = 0,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Post a result, signed ``age`` seconds ago, and return the response."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    timestamp = int(database_now(env.database).timestamp()) - age
    given = {TIMESTAMP_HEADER: str(timestamp), SIGNATURE_HEADER: sign(secret, timestamp, body), **(headers or {})}
    return client.post(f"/api/v1/external-scans/{scan_id}", body, content_type="application/json", headers=given)
