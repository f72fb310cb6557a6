"""The garbage collector keeps Python's thresholds in the web process and runs less often in commands."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

import pytest
from django.core.management import call_command

from vskill.management.environment_command import EnvironmentCommand
from vskill.processes.garbage import READING_THRESHOLD, seldom_collected


def test_the_web_process_keeps_pythons_own_thresholds() -> None:
    program = (
        "import gc; before = gc.get_threshold(); import django; django.setup(); print(gc.get_threshold() == before)"
    )
    environment = {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    shown = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert shown.stdout == "True\n"


def test_a_command_collects_seldom_while_it_runs_and_leaves_the_thresholds_as_they_were() -> None:
    seen: list[tuple[int, int, int]] = []

    class Look(EnvironmentCommand):
        def handle(self, *args: Any, **options: Any) -> None:
            seen.append(gc.get_threshold())

    before = gc.get_threshold()
    call_command(Look())
    assert (seen, gc.get_threshold()) == ([READING_THRESHOLD], before)


def test_thresholds_that_somebody_chose_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[tuple[int, ...]] = []
    monkeypatch.setattr(gc, "set_threshold", lambda *thresholds: chosen.append(thresholds))
    monkeypatch.setattr(gc, "get_threshold", lambda: (5000, 10, 10))
    with seldom_collected():
        assert chosen == []
    assert chosen == [(5000, 10, 10)]


@pytest.mark.parametrize("module", ["asgi", "wsgi"])
def test_a_web_process_walks_over_what_it_loaded_no_more(module: str) -> None:
    # There is no database to look at.
    program = (
        "import gc, vskill.unprepared_database as unprepared; unprepared.exit_unprepared = lambda: None\n"
        f"import vskill.{module}\n"
        "from django.apps import apps\n"
        "print(gc.get_freeze_count() > 50_000, any(one is apps for one in gc.get_objects()))\n"
    )
    environment = {"DJANGO_SETTINGS_MODULE": "tests.settings"}
    shown = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert shown.stdout == "True False\n"
