"""SIGKILL before and after each write and each commit: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.journey import WHOLE_WAY
from tests.end_to_end.processes import free_port, until
from tests.git_factory import make_repository, skill_md
from tests.reliability.conftest import Record
from tests.reliability.installation import Installation, Role, installation

CONSUMER = [
    "claim:1",
    "move:1",
    "history:1",
    "commit-move:1",
    "evidence:1",
    "evidence:2",
    "move:2",
    "commit-move:2",
    "version:1",
    "commit-version:1",
    "acknowledge:1",
]
WEB = ["entry:1", "history:1", "message:1", "commit-message:1"]


def points(steps: list[str]) -> list[str]:
    """Return the kill points before and after each step."""
    return [f"{when}:{step}" for step in steps for when in ("before", "after")]


def name_of(point: str) -> str:
    """Return the name of the environment for a kill point."""
    return point.replace(":", "-")


def steps_of(one: Installation, name: str) -> list[tuple[int, str, str]]:
    """Return the history rows of the only submission of an environment."""
    rows = one.rows(
        "SELECT sequence, from_state, to_state FROM submissions_submissiontransition "  # noqa: S608 - names of this test
        f"WHERE namespace = '{name}' ORDER BY sequence"
    )
    return [(int(sequence), before, after) for sequence, before, after in rows]


class TestConsumer:
    @pytest.fixture
    def one(self, tmp_path: Path) -> Iterator[Installation]:
        names = [name_of(point) for point in points(CONSUMER)]
        with installation(tmp_path, names, VSKILL_SCAN_PROCESSES="2") as made:
            yield made

    def test_every_submission_ends_published_once(self, one: Installation, record: Record) -> None:
        tried = points(CONSUMER)
        names = [name_of(point) for point in tried]
        folder = one.instance.data_dir
        repository = make_repository(folder / "skills.git", {"hello-skill/SKILL.md": skill_md()})
        one.run("submit_to", names=names, url=repository.as_uri())

        for some in (tried[start : start + 4] for start in range(0, len(tried), 4)):
            killed = [
                one.start("command", words=["consume", "--drain", "--environment", name_of(point)], kill_at=point)
                for point in some
            ]
            for point, consumer in zip(some, killed, strict=True):
                assert consumer.ends() == -signal.SIGKILL, f"{point} was not reached:\n{consumer.said()}"

        one.run("command", words=["consume", "--drain"])
        one.run("command", words=["recover_stuck", "--older-than", "0"])
        one.run("command", words=["consume", "--drain"])

        way = list(zip(["", *WHOLE_WAY], WHOLE_WAY, strict=False))
        for name in names:
            walked = steps_of(one, name)
            assert [step[1:] for step in walked] == way, name
            assert [step[0] for step in walked] == [1, 2, 3, 4], name
        one.run("published", names=names)
        assert one.number("SELECT count(*) FROM submissions_queuemessage") == 0
        one.run("command", words=["verify_store"])
        record(
            "SIGKILL of the consumer at each step, before and after each commit",
            f"{len(tried)} points: each published once, one history row a transition, store consistent",
        )


class TestWeb:
    @pytest.fixture
    def one(self, tmp_path: Path) -> Iterator[Installation]:
        with installation(tmp_path, [name_of(point) for point in points(WEB)]) as made:
            yield made

    def test_every_202_has_a_row_and_a_message_and_nothing_is_half_written(
        self, one: Installation, record: Record
    ) -> None:
        repository = make_repository(one.instance.data_dir / "skills.git", {"hello-skill/SKILL.md": skill_md()})
        accepted = 0
        for point in points(WEB):
            name = name_of(point)
            port = free_port()
            server = one.start("web", port=port, kill_at=point)
            wait_until_it_listens(server, port)
            answered = submit(port, name, repository.as_uri())
            if server_is_killed := answered is None:
                assert server.ends() == -signal.SIGKILL, server.said()
            else:
                server.killed()
            written = [
                one.number(f"SELECT count(*) FROM {table} WHERE {column} = '{name}'")  # noqa: S608 - names of this test
                for table, column in (
                    ("submissions_submissionentry", "namespace"),
                    ("submissions_submissiontransition", "namespace"),
                    ("submissions_queuemessage", "environment"),
                )
            ]
            assert written in ([0, 0, 0], [1, 1, 1]), f"{point}: half written"
            if answered is not None:
                assert (answered, written) == (202, [1, 1, 1]), point
            accepted += written == [1, 1, 1]
            assert server_is_killed, f"{point} was not reached"

        # Clients without an answer ask again, and get the one submission that exists.
        port = free_port()
        server = one.start("web", port=port)
        wait_until_it_listens(server, port)
        for point in points(WEB):
            assert submit(port, name_of(point), repository.as_uri()) in (200, 202)
        server.killed()
        assert one.number("SELECT count(*) FROM submissions_submissionentry") == len(points(WEB))
        assert one.number("SELECT count(*) FROM submissions_queuemessage") == len(points(WEB))
        record(
            "SIGKILL of the web process at each step of accepting",
            f"{len(points(WEB))} points: {accepted} written whole, the others not at all; asked again, each once",
        )


def wait_until_it_listens(server: Role, port: int) -> None:
    def listens() -> bool:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
            try:
                connection.request("GET", "/robots.txt", headers={"Host": "nobody.test"})
                connection.getresponse().read()
            except (ConnectionError, TimeoutError):
                return False
        return True

    until(listens)


def submit(port: int, name: str, url: str) -> int | None:
    """Submit a repository to an environment and return the status, or ``None`` without an answer."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        try:
            body = json.dumps({"repoUrl": url})
            headers = {"Host": f"{name}.test", "Content-Type": "application/json"}
            connection.request("POST", "/api/v1/submissions", body, headers)
            return connection.getresponse().status
        except (ConnectionError, http.client.RemoteDisconnected):
            return None
