"""``submit`` prints addresses of the server that runs, whatever port that listens on."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import override_settings

from tests.submissions.commands.run import run
from tests.submissions.front_door import repository, skills
from vskill.processes.single_instance import LOCK_NAME, only_instance, running_address

ADDRESS = "http://127.0.0.1:8123"


@pytest.mark.django_db(transaction=True)
def test_the_address_is_that_of_the_instance_that_runs_on_the_same_data(tmp_path: Path) -> None:
    url = repository(tmp_path, skills("one"))
    with override_settings(DATA_DIR=tmp_path), only_instance(tmp_path, ADDRESS):
        ended = run("submit", url)
    assert (ended.code, f"{ADDRESS}/submissions/sub_" in ended.out) == (0, True), ended


def test_an_instance_that_has_ended_or_was_killed_has_no_address(tmp_path: Path) -> None:
    assert running_address(tmp_path) == ""
    with only_instance(tmp_path, ADDRESS):
        assert running_address(tmp_path) == ADDRESS
    assert running_address(tmp_path) == ""
    (tmp_path / LOCK_NAME).write_text('{"process": 1, "host": "x", "address": "http://stale"}')
    assert running_address(tmp_path) == ""
