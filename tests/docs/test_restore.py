"""The backup, the drill and the restore of docs/production.md, run as they stand there on a registry with work."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings

from tests.docs.examples import section
from tests.docs.production import CHECKOUT, DATA, in_place
from tests.end_to_end.processes import ROOT, Instance, instance

# Debian keeps the programs of a PostgreSQL server, its own pg_dump among them, out of PATH.
PATH = os.pathsep.join([os.environ["PATH"], *map(str, Path("/usr/lib/postgresql").glob("*/bin"))])
ON_SQLITE = settings.DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3"
TITLE = ("Production", "Back up and restore")

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Instance]:
    """Return an empty installation, with the folders of a server beside its data."""
    (tmp_path / "backups").mkdir()
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "manage.py").symlink_to(ROOT / "manage.py")
    (checkout / ".venv").symlink_to(sys.prefix)
    (checkout / ".env").touch()
    with instance(tmp_path / "data") as made:
        yield made


def run(registry: Instance, script: str, places: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """Run a block of the page on the installation and return what it printed."""
    folder = registry.data_dir.parent
    script = in_place(script, dict(places))
    # As the account of the test: neither that of the service nor root is needed for what the commands do.
    for words in ("runuser -u vskill -- ", "-o vskill -g vskill "):
        script = script.replace(words, "")
    script = script.replace(CHECKOUT, str(folder / "checkout")).replace("/var/backups/vskill", str(folder / "backups"))
    lines = [line for line in script.splitlines() if not line.startswith("systemctl ")]
    environment = {name: value for name, value in registry.environment().items() if name != "DATABASE_URL"}
    done = subprocess.run(
        ["bash", "-ec", "\n".join(lines)],
        env={**environment, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def assert_complete(said: str, registry: Instance) -> None:
    """Check what the drill printed against the running registry."""
    waiting = len(registry.states())
    assert waiting > 3
    assert "default: nothing is wrong" in said
    assert f"default: {waiting} waiting" in said


@pytest.mark.skipif(not ON_SQLITE, reason="the tests run on another database")
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 shell is not installed")
def test_sqlite(registry: Instance) -> None:
    backup, drill, restore = (block.text for block in section("docs/production.md", *TITLE, "SQLite"))
    places = {DATA: str(registry.data_dir)}
    database = registry.data_dir / "vskill.sqlite3"
    # A connection that stays open, as those of the services do, keeps what is new in the -wal file.
    with contextlib.closing(sqlite3.connect(database)) as open_connection:
        open_connection.execute("SELECT COUNT(*) FROM submissions_submissionentry").fetchone()
        registry.manage("load_demo")
        assert database.with_name("vskill.sqlite3-wal").stat().st_size > 0
        run(registry, backup, places, {})
        before = registry.states()
    assert_complete(run(registry, drill, places, {}), registry)
    assert not registry.data_dir.with_name("data-drill").exists()

    with contextlib.closing(sqlite3.connect(database)) as damage, damage:
        damage.execute("DELETE FROM submissions_submissionentry")
    run(registry, restore, places, {})
    assert registry.states() == before


@pytest.mark.skipif(ON_SQLITE, reason="the tests run on another database")
@pytest.mark.skipif(shutil.which("pg_dump", path=PATH) is None, reason="pg_dump is not installed")
def test_postgresql(registry: Instance) -> None:
    registry.manage("load_demo")
    backup, drill = (block.text for block in section("docs/production.md", *TITLE, "PostgreSQL"))
    address = urlsplit(registry.database_url)
    server = f"{address.scheme}://{address.netloc}"
    places = {"postgres://vskill:PASSWORD@127.0.0.1:5432/vskill": f"{server}{address.path}"}
    variables = {"PATH": PATH}
    run(registry, backup, places, variables)
    places = {
        "postgres://postgres:PASSWORD@127.0.0.1:5432/": f"{server}/",
        "postgres://vskill:PASSWORD@127.0.0.1:5432/": f"{server}/",
        "--owner=vskill": f"--owner={address.username}",
    }
    assert_complete(run(registry, drill, places, variables), registry)
