"""What does not say that it depends on the database fails when it asks for it, and only that is left out elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Each asks for the database in another way, and is not marked.
ASKS = {
    "a query": "KVEntry.objects.count()",
    "the connection of another test": "connection.vendor",
    "a query that is not sent": "str(KVEntry.objects.all().query)",
    "the settings": "settings.DATABASES['default']",
    "the settings of all": "dict(settings.DATABASES.items())",
    "a process": "subprocess.run([sys.executable, 'manage.py', 'migrate', '--check'], check=True)",
    "a fixture by its name": "request.getfixturevalue('transactional_db')",
}
HEAD = """
import subprocess, sys
import pytest
from django.conf import settings
from django.db import connection
from vskill.kv.models import KVEntry

@pytest.mark.django_db
def test_marked():
    assert KVEntry.objects.count() == 0

@pytest.mark.database
def test_marked_otherwise():
    assert settings.DATABASES["default"] and connection.vendor

def test_with_a_fixture(db):
    assert KVEntry.objects.count() == 0

def test_without():
    assert list(settings.DATABASES) == ["default"]
"""


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    tests = [f"def test_asks_{number}(request):\n    {line}\n" for number, line in enumerate(ASKS.values())]
    (folder / "test_it.py").write_text("\n".join([HEAD, *tests]))
    (folder / "conftest.py").write_text("from tests.conftest import *\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml")]
    command += [f"--rootdir={folder}", "--tb=line", "-o", "addopts=", *arguments, str(folder)]
    # A database of its own, because the one of this run is emptied by its own tests alone.
    own = {"VSKILL_TEST_DATA_DIR": str(folder), "DATABASE_URL": f"sqlite:///{folder / 'vskill.sqlite3'}"}
    environment = {**os.environ, **own}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_a_test_that_asks_for_the_database_says_so_or_fails(tmp_path: Path) -> None:
    said = _run(tmp_path, "-n", "0").stdout
    assert f"{len(ASKS)} failed, 4 passed" in said, said
    assert said.count("DependsOnTheDatabase") >= len(ASKS) - 1, said
    assert "non-zero exit status 1" in said, said


def test_a_run_on_another_database_leaves_out_the_others_and_counts_them(tmp_path: Path) -> None:
    said = _run(tmp_path, "-p", "tests.services.database_tests", "-n", "1").stdout
    assert "3 passed" in said, said
    assert f"{len(ASKS) + 1} tests that do not depend on the database were left out" in said, said
    assert "failed" not in said, said


def test_a_run_without_anything_left_is_no_failure(tmp_path: Path) -> None:
    done = _run(tmp_path, "-p", "tests.services.database_tests", "-n", "0", "-k", "asks")
    assert f"{len(ASKS)} tests that do not depend" in done.stdout, done.stdout
    assert done.returncode == 0, done.stdout
