"""SIGKILL while published versions are sent to be scanned again, and while they are: nothing is done twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.conftest import Record
from tests.reliability.installation import Installation, installation
from tests.reliability.test_killed_at_each_step import name_of, points

FEED = ["message:1", "commit-message:1"]
WORK = ["claim:1", "later:1", "flag:1", "commit-later:1", "acknowledge:1"]


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Installation]:
    names = [name_of(point) for point in points([*FEED, *WORK])]
    with installation(tmp_path, names, VSKILL_SCAN_PROCESSES="2") as made:
        yield made


def test_each_version_is_scanned_and_flagged_once(one: Installation, record: Record) -> None:
    names = [name_of(point) for point in points([*FEED, *WORK])]
    one.run("publish_bad", names=names)
    for point in points(FEED):
        feeding = one.start("command", words=["rescan", "--environment", name_of(point)], kill_at=point)
        assert feeding.ends() == -signal.SIGKILL, f"{point} was not reached:\n{feeding.said()}"
    # The lock of a run that was killed ends by itself; the command for one skill needs none.
    for point in points(FEED):
        one.run("command", words=["rescan", "--skill", "hello-skill", "--environment", name_of(point)])
    for point in points(WORK):
        one.run("command", words=["rescan", "--environment", name_of(point)])
        consumer = one.start("command", words=["consume", "--drain", "--environment", name_of(point)], kill_at=point)
        assert consumer.ends() == -signal.SIGKILL, f"{point} was not reached:\n{consumer.said()}"
    assert one.number("SELECT count(*) FROM submissions_queuemessage") >= len(names) - 1

    one.run("command", words=["consume", "--drain"])
    for name in names:
        for table in ("laterscan", "skillflag"):
            assert one.number(f"SELECT count(*) FROM marketplace_{table} WHERE namespace = '{name}'") == 1, (  # noqa: S608 - names of this test
                name
            )
        flagged = "SELECT count(*) FROM marketplace_historyevent WHERE action = 'flagged: verdict' AND namespace = "
        assert one.number(f"{flagged}'{name}'") == 1, name
    assert one.number("SELECT count(*) FROM marketplace_skillversion WHERE scan_key = ''") == 0
    assert one.number("SELECT count(*) FROM submissions_queuemessage") == 0
    one.run("command", words=["verify_store"])
    record(
        "SIGKILL while published skills are scanned again, before and after each write and commit",
        f"{len(names)} points: each scanned and flagged once, one history row, store consistent",
    )
