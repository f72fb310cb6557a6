"""The first hour works in an environment with python3, git and make alone."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.conf import settings

from tests.first_hour.bare import ROOT


@pytest.mark.slow
@pytest.mark.database
@pytest.mark.timeout(400)
def test_everything_that_somebody_new_does_works() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so it is not known what belongs to it")
    if settings.DATABASES["default"]["ENGINE"] != "django.db.backends.sqlite3":
        pytest.skip("the first hour is one on SQLite, and the run of the tests on SQLite has it")
    ended = subprocess.run(
        [sys.executable, "-m", "tests.first_hour"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout
