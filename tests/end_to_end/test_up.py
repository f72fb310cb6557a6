"""`manage.py up`, as `make run` starts it: from an empty data directory to published skills and a clean exit."""

from __future__ import annotations

import os
import re
import signal
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.end_to_end.processes import Instance, free_port, instance, until
from tests.end_to_end.test_demo import GOOD
from tests.end_to_end.web import address, answer, body, until_healthy
from tests.process_groups import Started

# The states in which the skills of the demo end.
ENDS = {"PUBLISHED", "ON_HOLD", "TIER1_FAILED"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Instance]:
    port = str(free_port())
    with instance(tmp_path / "data", HOST="127.0.0.1", PORT=port, VSKILL_QUEUE_POLL_INTERVAL="0.1") as made:
        yield made


def roles(installation: Instance) -> set[str]:
    told = " ".join(installation.processes().values())
    return {role for role in ("uvicorn", "consume", "schedule") if f" {role}" in told}


def can_log_in(installation: Instance, password: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    login = address(installation, "/admin/login/?next=/admin/")
    page = opener.open(login, timeout=30).read().decode()
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[0]
    fields = {"csrfmiddlewaretoken": token, "username": "admin", "password": password, "next": "/admin/"}
    answered = opener.open(login, urlencode(fields).encode(), timeout=30)
    return bool(answered.geturl() == address(installation, "/admin/"))


def test_one_command_goes_from_nothing_to_published_skills_and_ends_cleanly(installation: Instance) -> None:
    with installation.started("up") as up:
        until_healthy(installation, up)
        up.until(lambda: {item["displayName"] for item in body(installation, "/api/v1/skills")["items"]} >= GOOD)
        listed = body(installation, "/api/v1/skills")
        assert listed["nextCursor"] is None
        for item in listed["items"]:
            status, page = answer(installation, f"/skills/{item['slug']}")
            assert (status, item["displayName"] in page) == (200, True)
        up.until(lambda: set(installation.states().values()) == ENDS)
        up.until(lambda: [one["skillCount"] for one in body(installation, "/api/v1/collections")["items"]] == [4])
        assert roles(installation) == {"uvicorn", "consume", "schedule"}

        said = up.said()
        assert address(installation, "") in said
        password = re.findall(r"password (\S+)", re.sub(r"\x1b\[[0-9;]*m", "", said))[0]
        assert can_log_in(installation, password)

        up.interrupt()
        assert up.ends() == 0
        assert "Traceback" not in up.said()
        assert installation.processes() == {}


def test_ctrl_c_in_the_middle_of_work_loses_nothing_and_the_second_start_finishes_it(installation: Instance) -> None:
    with installation.started("up") as first:
        first.until(lambda: "TIER1_SCANNING" in installation.states().values())
        first.interrupt()
        assert first.ends() == 0
    assert installation.processes() == {}
    # Everything was finished or released, so the second start need not wait for a lease to end.
    leased = "SELECT count(*) FROM submissions_queuemessage WHERE leased_until IS NOT NULL OR crashes > 0"
    assert installation.rows(leased) == [(0,)]
    before = set(installation.states())
    assert before >= GOOD
    with installation.started("up") as second:
        until_healthy(installation, second)
        second.until(lambda: address(installation, "/admin/") in second.said())
        assert "shown once" not in second.said()
        second.until(lambda: set(installation.states().values()) == ENDS)
        second.signal(signal.SIGTERM)
        assert second.ends() == 0
    assert set(installation.states()) == before


def alive() -> set[int]:
    return {int(folder.name) for folder in Path("/proc").glob("[0-9]*")}


def test_a_part_that_dies_is_started_again_and_without_the_demo_nothing_is_submitted(installation: Instance) -> None:
    installation.variables["DEMO"] = "0"
    with installation.started("up") as up:
        up.until(lambda: address(installation, "/healthz") in up.said())
        consumers = [pid for pid, told in installation.processes().items() if " consume" in told]
        assert len(consumers) == 1
        os.kill(consumers[0], signal.SIGKILL)
        up.until(lambda: roles(installation) == {"uvicorn", "consume", "schedule"} and consumers[0] not in alive())
        # It restarts parts only after the step that would load the demo.
        assert installation.states() == {}
        up.interrupt()
        assert up.ends() == 0


def threads(process: Started) -> int:
    return len(list(Path(f"/proc/{process.process.pid}/task").iterdir()))


def test_a_killed_parent_leaves_no_process_behind_and_its_consumer_finishes_first(installation: Instance) -> None:
    with installation.started("up") as up:
        until(lambda: " uvicorn " in " ".join(installation.processes().values()))
        assert threads(up) == 1
        up.until(lambda: "TIER1_SCANNING" in installation.states().values())
        # Each thread that dies sends the signal again, and the second one ends a consumer at once.
        assert threads(up) == 1
        up.signal(signal.SIGKILL)
        assert up.ends() == -signal.SIGKILL
        until(lambda: installation.processes() == {})
        assert "consumer ended: " in up.said()
    leased = "SELECT count(*) FROM submissions_queuemessage WHERE leased_until IS NOT NULL OR crashes > 0"
    assert installation.rows(leased) == [(0,)]


def test_a_port_that_is_taken_is_said_at_once_and_nothing_is_started(installation: Instance, tmp_path: Path) -> None:
    other = replace(installation, data_dir=tmp_path / "other")
    other.data_dir.mkdir()
    with installation.started("up") as first:
        until_healthy(installation, first)
        with other.started("up") as second:
            assert second.ends() == 1
            assert f"port {installation.variables['PORT']} of 127.0.0.1 cannot be used" in second.said()
            assert "runs at" not in second.said()
        assert answer(installation, "/healthz")[0] == 200
        first.interrupt()
        assert first.ends() == 0
    assert installation.processes() == {}
    assert other.processes() == {}


def test_a_second_instance_on_the_same_data_is_told_of_the_first_and_starts_nothing(installation: Instance) -> None:
    installation.variables["DEMO"] = "0"
    with installation.started("up") as first:
        first.until(lambda: "Ctrl-C ends it" in first.said())
        before = installation.processes()
        with installation.started("up", "--port", str(free_port())) as second:
            assert second.ends() == 1
            [line] = second.said().splitlines()
            assert line.startswith(
                f"CommandError: Nothing was started: vskill already runs on {installation.data_dir}: "
            )
            assert f"process {first.process.pid}, {address(installation, '')}." in line
        assert installation.processes() == before
        # A kill leaves no lock behind.
        first.signal(signal.SIGKILL)
        assert first.ends() == -signal.SIGKILL
        until(lambda: installation.processes() == {})
    with installation.started("up") as third:
        until_healthy(installation, third)
        third.interrupt()
        assert third.ends() == 0
