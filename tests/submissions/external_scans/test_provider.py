"""The scanner that comes with the product, without semgrep: what it takes, fetches, unpacks and reads."""

from __future__ import annotations

import http.client
import io
import json
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import CommandError

from submissions.external_scans.provider.archive import fetch_archive, unpack
from submissions.external_scans.provider.semgrep import ScannerFailed, read_report, run_semgrep
from submissions.external_scans.provider.server import MAX_BODY, dispatches
from submissions.external_scans.provider.worker import Job
from submissions.external_scans.signing import signed_headers
from tests.submissions.commands.run import run

SECRET = "a secret"
DOCUMENT = {
    "scanId": "scan_1",
    "environment": "default",
    "archiveUrl": "http://127.0.0.1/a.zip",
    "archiveSha256": "0" * 64,
    "resultUrl": "http://127.0.0.1/result",
}


def send(port: int, document: Any, *, secret: str = SECRET, age: int = 0) -> int:
    """Send a dispatch and return the status of the answer."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("POST", "/scan", body, signed_headers(secret, int(time.time()) - age, body))
        return connection.getresponse().status


def test_a_dispatch_is_taken_once_and_only_when_it_is_signed() -> None:
    taken: list[Job] = []

    def take(job: Job) -> bool:
        taken.append(job)
        return len(taken) < 3

    with dispatches("127.0.0.1", 0, {"default": SECRET}, take) as port:
        assert [send(port, DOCUMENT), send(port, DOCUMENT)] == [202, 202]
        assert send(port, DOCUMENT, secret="other") == 401
        assert send(port, DOCUMENT, age=400) == 401
        assert send(port, {**DOCUMENT, "environment": "foreign"}) == 401
        assert send(port, b"{") == 401
        assert send(port, {**DOCUMENT, "scanId": "scan_2", "resultUrl": "file:///etc/passwd"}) == 400
        assert send(port, {"environment": "default"}) == 400
        assert send(port, b" " * (MAX_BODY + 1)) == 413
        assert send(port, {**DOCUMENT, "scanId": "scan_3"}) == 202
        assert send(port, {**DOCUMENT, "scanId": "scan_4"}) == 503
        taken.clear()
        assert send(port, {**DOCUMENT, "scanId": "scan_4"}) == 202
    assert [job.document["scanId"] for job in taken] == ["scan_4"]
    assert SECRET not in repr(taken[0])


@contextmanager
def serving(content: bytes, status: int = 200) -> Iterator[str]:
    """Answer every request with ``content``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server gives it
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/a.zip"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def archive(**files: str) -> bytes:
    """Return a zip archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as written:
        for name, text in files.items():
            written.writestr(name, text)
    return made.getvalue()


def test_only_the_archive_that_was_named_is_used() -> None:
    content = archive(**{"SKILL.md": "hello"})
    with serving(content) as url:
        assert fetch_archive(url, sha256(content).hexdigest()) == content
        with pytest.raises(ScannerFailed, match="not the one"):
            fetch_archive(url, "0" * 64)
    with serving(content, 404) as url, pytest.raises(ScannerFailed, match="status 404"):
        fetch_archive(url, sha256(content).hexdigest())
    with pytest.raises(ScannerFailed, match="could not be fetched"):
        fetch_archive(url, sha256(content).hexdigest())


@pytest.mark.parametrize("name", ["../out", "/out/of/it", "a/../../out"])
def test_an_archive_that_would_leave_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(ScannerFailed, match="leave its folder"):
        unpack(archive(**{name: "x"}), tmp_path / "in")
    assert not (tmp_path / "out").exists()


def test_an_archive_is_unpacked_and_a_broken_one_is_said(tmp_path: Path) -> None:
    unpack(archive(**{"scripts/a.py": "print()"}), tmp_path)
    assert (tmp_path / "scripts/a.py").read_text() == "print()"
    with pytest.raises(ScannerFailed, match="could not be unpacked"):
        unpack(b"no archive", tmp_path)


@pytest.mark.parametrize(
    "output", [b"", b"[]", b"{}", b'{"results": 1, "errors": [], "version": "1"}', b'{"results": [{}], "errors": []}']
)
def test_what_is_no_report_is_a_failure(tmp_path: Path, output: bytes) -> None:
    with pytest.raises(ScannerFailed, match="printed no report"):
        read_report(output, tmp_path)


def test_a_file_that_was_not_parsed_is_said_and_an_error_of_all_is_a_failure(tmp_path: Path) -> None:
    unread = {"path": "a.py", "level": "warn", "message": "syntax"}
    report = {"results": [], "errors": [unread], "version": "1.0"}
    (finding,) = read_report(json.dumps(report).encode(), tmp_path).findings
    assert (finding["ruleId"], finding["file"]) == ("not-read", "a.py")
    report["errors"] = [{"level": "error", "message": "no memory"}]
    with pytest.raises(ScannerFailed, match="no memory"):
        read_report(json.dumps(report).encode(), tmp_path)


@pytest.mark.parametrize(
    ("script", "words"), [("exit 3", "status 3"), ("kill -9 $$", "status -9"), ("echo nothing", "no report")]
)
async def test_a_semgrep_that_fails_is_a_failure(tmp_path: Path, script: str, words: str) -> None:
    program = tmp_path / "semgrep"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with pytest.raises(ScannerFailed, match=words):
        await run_semgrep(str(program), tmp_path)


@pytest.mark.django_db
def test_the_scanner_does_not_start_without_what_it_needs(settings: Any, tmp_path: Path) -> None:
    settings.SEMGREP = str(tmp_path / "absent")
    with pytest.raises(CommandError, match="make engines"):
        run("semgrep_scanner")
    settings.SEMGREP = "/bin/true"
    with pytest.raises(CommandError, match="has a secret"):
        run("semgrep_scanner")
    with pytest.raises(CommandError, match="HOST:PORT"):
        run("semgrep_scanner", "--listen", "8200")
