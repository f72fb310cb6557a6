"""The nginx configuration of docs/production, run by nginx itself in front of the server as its unit starts it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Final

import pytest

from tests.docs.production import command_of, in_place, read
from tests.end_to_end.processes import ROOT, free_port, instance, until
from tests.page_text import without_inline_tags
from tests.submissions.source.https_host import CERTIFICATE, KEY

NGINX: Final = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
HOST: Final = "skills.example.org"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
    pytest.mark.django_db(transaction=True),
]


@dataclass
class Site:
    """A running nginx with the server behind it: ports of loopback, and the server's log."""

    http: int
    https: int
    log: Path

    def connection(self, *, source: str = "127.0.0.1") -> HTTPSConnection:
        """Return a TLS connection from a loopback address, which trusts the certificate of the test alone."""
        trust = ssl.create_default_context(cafile=str(CERTIFICATE))
        return HTTPSConnection("127.0.0.1", self.https, context=trust, source_address=(source, 0), timeout=60)

    def request(
        self,
        path: str,
        *,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        source: str = "127.0.0.1",
    ) -> tuple[HTTPResponse, str]:
        """Send one request over TLS, and return the response with its text."""
        with contextlib.closing(self.connection(source=source)) as connection:
            connection.request(method, path, body=body, headers={"Host": HOST, **(headers or {})})
            response = connection.getresponse()
            return response, response.read().decode()


def configuration(folder: Path, upstream: int, http: int, https: int) -> str:
    """Return a whole configuration around the one of the page, with ports and paths of this test."""
    # Without IPv6, which a container may lack. A second in place of ten, so that the test is quick, and one request a
    # minute in place of thirty, so that a slow machine comes to the limit too.
    page = re.sub(r"^ +listen \[::\].*\n", "", read("nginx.conf"), flags=re.MULTILINE)
    page = in_place(
        page,
        {
            "listen 80;": f"listen 127.0.0.1:{http};",
            "listen 443 ssl;": f"listen 127.0.0.1:{https} ssl;",
            "/etc/ssl/vskill/fullchain.pem": str(CERTIFICATE),
            "/etc/ssl/vskill/privkey.pem": str(KEY),
            "http://127.0.0.1:8000": f"http://127.0.0.1:{upstream}",
            "rate=30r/m": "rate=1r/m",
            "client_header_timeout 10s": "client_header_timeout 1s",
            "client_body_timeout 10s": "client_body_timeout 1s",
        },
    )
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    # The folder belongs to the account of the test, and a root's workers would become somebody else's.
    user = "user root;" if os.geteuid() == 0 else ""
    return f"{user} pid {folder}/nginx.pid; events {{}} http {{ access_log off; {temporary}\n{page}}}"


def listening(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@contextlib.contextmanager
def running(command: list[str], log: Path, variables: Mapping[str, str], *ports: int) -> Iterator[None]:
    """Run a server until the end of the body; it is ready when it listens on all ports."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=dict(variables), stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        until(lambda: process.poll() is not None or all(map(listening, ports)))
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def site(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Start the server as its unit does, with a log of requests, and nginx in front of it."""
    folder = tmp_path_factory.mktemp("site")
    upstream, http, https = free_port(), free_port(), free_port()
    # No public URL: the address that pages give out is then made of what nginx forwards.
    environments = f'{{"default": {{"hosts": ["{HOST}"]}}}}'
    (folder / "nginx.conf").write_text(configuration(folder, upstream, http, https))
    command = " ".join(command_of("vskill-web.service"))
    server = in_place(command, {"--port 8000": f"--port {upstream}", "--no-access-log": "--access-log"}).split()
    proxy = [str(NGINX), "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf", "-g", "daemon off;"]
    with instance(folder / "data", VSKILL_ENVIRONMENTS=environments) as made, contextlib.ExitStack() as stack:
        log = folder / "server.log"
        variables = {name: value for name, value in made.environment().items() if name != "VSKILL_HOSTS"}
        stack.enter_context(running(server, log, variables, upstream))
        stack.enter_context(running(proxy, folder / "nginx.log", {"PATH": os.environ["PATH"]}, http, https))
        yield Site(http, https, log)


def test_pages_are_served_over_tls_under_the_address_that_the_visitor_used(site: Site) -> None:
    response, page = site.request("/about/api")
    assert response.status == 200
    assert f"https://{HOST}/api/v1/submissions" in without_inline_tags(page)
    assert response.headers["Strict-Transport-Security"] == "max-age=31536000"


def test_plain_http_leads_to_tls(site: Site) -> None:
    with contextlib.closing(HTTPConnection("127.0.0.1", site.http, timeout=60)) as connection:
        connection.request("GET", "/skills?q=notes", headers={"Host": HOST})
        response = connection.getresponse()
    assert (response.status, response.headers["Location"]) == (301, f"https://{HOST}/skills?q=notes")


def test_the_server_learns_the_clients_address_and_not_what_the_client_claims(site: Site) -> None:
    claims = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "http"}
    response, page = site.request("/about/api?seen", headers=claims, source="127.0.0.7")
    assert response.status == 200
    assert f"https://{HOST}/api/v1/submissions" in without_inline_tags(page)
    [line] = [line for line in site.log.read_text().splitlines() if "/about/api?seen" in line]
    assert " 127.0.0.7:" in line
    assert "203.0.113.9" not in line


def test_another_host_name_is_refused_by_the_registry_itself(site: Site) -> None:
    response, text = site.request("/", headers={"Host": "other.example.org"})
    assert (response.status, text) == (421, "This server does not serve that host name. Add it to VSKILL_HOSTS.\n")


def test_a_form_can_be_sent_through_the_proxy(site: Site) -> None:
    response, page = site.request("/submit")
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    cookie = response.headers["Set-Cookie"].partition(";")[0]
    assert token is not None
    headers = {
        "Cookie": cookie,
        "Origin": f"https://{HOST}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    body = f"csrfmiddlewaretoken={token[1]}&repository_url=no%20address".encode()
    response, page = site.request("/submit", method="POST", body=body, headers=headers)
    assert "That is not a repository address" in page


def test_a_body_over_the_limit_is_refused_before_the_registry_sees_it(site: Site) -> None:
    response, text = site.request("/api/v1/submissions?large", method="POST", body=bytes(1024 * 1024 + 1))
    assert response.status == 413
    assert "nginx" in text
    assert "/api/v1/submissions?large" not in site.log.read_text()


def test_a_body_within_the_limit_reaches_the_registry(site: Site) -> None:
    response, text = site.request("/api/v1/submissions?fits", method="POST", body=bytes(1024 * 1024))
    assert response.status == 413
    assert "The body is larger than 64 KiB" in text


@pytest.mark.parametrize(
    "beginning",
    [
        pytest.param(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n", id="headers"),
        pytest.param(f"POST /api/v1/submissions HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 9\r\n\r\n", id="body"),
    ],
)
def test_a_client_that_does_not_go_on_is_cut_off(site: Site, beginning: str) -> None:
    trust = ssl.create_default_context(cafile=str(CERTIFICATE))
    with (
        socket.create_connection(("127.0.0.1", site.https), timeout=60) as plain,
        trust.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        connection.sendall(beginning.encode())
        # Reads to the end, which only nginx can make.
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")


def test_a_client_that_submits_without_end_is_slowed_down_and_may_still_read(site: Site) -> None:
    sender = "127.0.0.9"
    seen = [site.request("/api/v1/submissions", method="POST", body=b"{}", source=sender)[0].status for _ in range(25)]
    assert set(seen) == {400, 429}
    assert site.request("/about/api", source=sender)[0].status == 200
    assert site.request("/api/v1/submissions", method="POST", body=b"{}", source="127.0.0.10")[0].status == 400
