"""The systemd units of docs/production."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

from tests.docs.production import FOLDER, command_of, read, unit

UNITS = sorted(path.name for path in FOLDER.glob("*.service"))


def stop_limit(name: str) -> int:
    [seconds] = re.findall(r"^TimeoutStopSec=(\d+)$", read(name), re.MULTILINE)
    return int(seconds)


def test_there_is_a_unit_for_each_process() -> None:
    assert UNITS == ["vskill-consumer.service", "vskill-scheduler.service", "vskill-web.service"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    for name in UNITS:
        (tmp_path / name).write_text(unit(name))
    command = ["systemd-analyze", "verify", *(str(tmp_path / name) for name in UNITS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # A line that it does not know is a warning and no failure.
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_consumer_has_longer_to_stop_than_its_grace() -> None:
    assert stop_limit("vskill-consumer.service") > settings.QUEUE_SHUTDOWN_GRACE


def test_the_server_has_longer_to_stop_than_it_takes() -> None:
    command = command_of("vskill-web.service")
    assert stop_limit("vskill-web.service") > int(command[command.index("--timeout-graceful-shutdown") + 1])


@pytest.mark.parametrize("name", UNITS)
def test_only_the_main_process_is_told_to_stop(name: str) -> None:
    # An engine or a git that got the signal too would end, and its work would count as failed.
    assert "\nKillMode=mixed\n" in read(name)


@pytest.mark.parametrize("name", UNITS)
def test_engines_can_be_cut_off_from_the_network(name: str) -> None:
    assert not re.search(r"^(RestrictNamespaces|PrivateUsers|SystemCallFilter)=", read(name), re.MULTILINE)
