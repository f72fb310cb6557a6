"""SIGKILL while an upload is taken and while it is checked: what was accepted is published, and once."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from tests.end_to_end.processes import free_port
from tests.reliability.conftest import Record
from tests.reliability.installation import Installation, installation
from tests.reliability.test_killed_at_each_step import name_of, points, wait_until_it_listens
from tests.submissions.uploads.uploading import BOUNDARY, FILES, SKILLS, form, named, payload

# Of the web process in one request, then where files are sent ahead, then of the consumer.
TAKING: Final = ["bundle:1", "entry:1", "history:1", "message:1", "commit-message:1"]
AHEAD: Final = ["staged:2", "bundle:1", "commit-message:1"]
CHECKING: Final = ["commit-move:1", "commit-move:2", "version:1", "commit-version:1"]


def ask(port: int, name: str, token: str, path: str, body: bytes, kind: str) -> dict[str, str] | None:
    """Send a request and return the JSON of the answer, or ``None`` without an answer."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        headers = {"Host": f"{name}.test", "Content-Type": kind, "Authorization": f"Bearer {token}"}
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (ConnectionError, http.client.RemoteDisconnected):
            return None
        assert answer.status in (200, 202), text
        found: dict[str, str] = json.loads(text)
        return found


def in_one_request(port: int, name: str, token: str) -> dict[str, str] | None:
    """Upload a skill as one form; return the answer, or ``None`` without one."""
    body = form(payload(), list(FILES.items()))
    return ask(port, name, token, SKILLS, body, f"multipart/form-data; boundary={BOUNDARY}")


def each_file_ahead(port: int, name: str, token: str) -> dict[str, str] | None:
    """Upload each file of a skill and then their list; return the answer to that, or ``None`` without one."""
    listed = []
    for path, content in FILES.items():
        said = named(path, content)
        given = ask(port, name, token, f"{SKILLS}/-/upload-url", json.dumps(said).encode(), "application/json")
        if given is None:
            return None
        stored = ask(port, name, token, urlsplit(given["uploadUrl"]).path, content, "text/plain")
        if stored is None:
            return None
        listed.append({**said, **stored})
    return ask(port, name, token, SKILLS, json.dumps(payload(files=listed)).encode(), "application/json")


FORMS: Final = {"form": (in_one_request, points(TAKING)), "json": (each_file_ahead, points(AHEAD))}
CASES: Final = [(kind, point) for kind, (_upload, tried) in FORMS.items() for point in tried]


def environment_of(kind: str, point: str) -> str:
    return f"{kind}-{name_of(point)}"


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Installation]:
    names = [environment_of(kind, point) for kind, point in CASES] + [name_of(point) for point in points(CHECKING)]
    with installation(tmp_path, names) as made:
        yield made


def test_an_upload_is_whole_or_not_there_and_is_published_once(one: Installation, record: Record) -> None:
    names = [environment_of(kind, point) for kind, point in CASES]
    checked = [name_of(point) for point in points(CHECKING)]
    tokens: Mapping[str, str] = json.loads(one.run("tokens", names=[*names, *checked]).splitlines()[-1])
    accepted = 0
    for kind, point in CASES:
        name, port = environment_of(kind, point), free_port()
        server = one.start("web", port=port, kill_at=point)
        wait_until_it_listens(server, port)
        assert FORMS[kind][0](port, name, tokens[name]) is None, f"{kind} {point} was not reached"
        assert server.ends() == -signal.SIGKILL, server.said()
        written = [
            one.number(f"SELECT count(*) FROM {table} WHERE {column} = '{name}'")  # noqa: S608 - names of this test
            for table, column in (
                ("submissions_uploadedbundle", "namespace"),
                ("submissions_submissionentry", "namespace"),
                ("submissions_submissiontransition", "namespace"),
                ("submissions_queuemessage", "environment"),
            )
        ]
        assert written in ([0] * 4, [1] * 4), f"{kind} {point}: half written"
        accepted += written == [1] * 4

    # The client asks again where it had no answer.
    port = free_port()
    server = one.start("web", port=port)
    wait_until_it_listens(server, port)
    for kind, point in CASES:
        name = environment_of(kind, point)
        answer = FORMS[kind][0](port, name, tokens[name])
        assert answer is not None
        assert answer["publicationStatus"] == "pending", (kind, point)
    for name in checked:
        assert in_one_request(port, name, tokens[name]) is not None
    server.killed()

    for point in points(CHECKING):
        consumer = one.start("command", words=["consume", "--drain", "--environment", name_of(point)], kill_at=point)
        assert consumer.ends() == -signal.SIGKILL, f"{point} was not reached:\n{consumer.said()}"
    one.run("command", words=["consume", "--drain"])
    one.run("command", words=["recover_stuck", "--older-than", "0"])
    one.run("command", words=["consume", "--drain"])

    everything = len(names) + len(checked)
    for table in ("submissions_uploadedbundle", "submissions_submissionentry", "marketplace_skillversion"):
        assert one.number(f"SELECT count(*) FROM {table}") == everything, table  # noqa: S608 - names of this test
    assert one.number("SELECT count(*) FROM marketplace_skillversion WHERE version = '1.0.0'") == everything
    assert one.number("SELECT count(*) FROM submissions_queuemessage") == 0
    one.run("command", words=["verify_store"])
    record(
        "SIGKILL of the web process and of the consumer at each step of an upload",
        f"{everything} points: {accepted} were taken whole, the others not at all; each published once",
    )
