"""A database without tables, or with those of an earlier release, is named in one line, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command, get_commands
from django.db import connections
from pytest_django import DjangoDbBlocker

from tests.vskill.absent_database import ALIAS, absent_database, dead_server, unreadable_file
from vskill.unprepared_database import DatabaseNotPrepared, place_of, require_prepared

pytestmark = pytest.mark.database

# What the commands of this project that use its tables are called with.
ARGUMENTS = {
    "audience": ["hello-skill"],
    "block": ["list"],
    "check_repositories": [],
    "follow": ["--list"],
    "unfollow": ["https://github.com/acme/skills"],
    "poll_followed": [],
    "claim": ["list"],
    "consume": ["--once"],
    "deliver": [],
    "job": ["job_0"],
    "known_bad": ["list"],
    "load_demo": [],
    "migrate_skill_slugs": [],
    "pause": ["a new disk"],
    "purge_expired": [],
    "queue_status": [],
    "recount_downloads": [],
    "watch_references": [],
    "recover_stuck": [],
    "rescan": [],
    "resume": [],
    "retry": [],
    "schedule": [],
    "sign_published": [],
    "signing_key": ["list"],
    "submit": ["acme/skills"],
    "team": ["list"],
    "token": ["list"],
    "transfer": ["list"],
    "verify_store": [],
    "verify_version": ["hello-skill", "1.0.0"],
    "webhook": ["list"],
}
# These use no table, or migrate by themselves, or use those of Django, which manage.py watches over.
OTHERS = {
    "clean_scratch",
    "evaluate",
    "external_scans",
    "first_admin",
    "rules",
    "scan",
    "semgrep_scanner",
    "settings",
    "state_diagram",
    "up",
}


@pytest.fixture
def unprepared(tmp_path: Path, django_db_blocker: DjangoDbBlocker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put a database without tables in the place of the one of the tests, and return its file."""
    path = tmp_path / "empty.sqlite3"
    of_the_tests = connections["default"]
    options = {
        **connections.settings["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": {},
    }
    with django_db_blocker.unblock(), monkeypatch.context() as patch:
        patch.setitem(connections.settings, "default", options)
        del connections["default"]
        yield path
        connections["default"].close()
        connections["default"] = of_the_tests


def test_every_command_of_this_project_is_looked_at() -> None:
    ours = {
        name
        for name, app in get_commands().items()
        if str(app).split(".")[0] in {"vskill", "marketplace", "submissions"}
    }
    assert ours == ARGUMENTS.keys() | OTHERS


@pytest.mark.parametrize("command", ARGUMENTS)
def test_a_command_says_where_it_looked_and_what_to_run(unprepared: Path, command: str) -> None:
    with pytest.raises(CommandError) as raised:
        call_command(command, *ARGUMENTS[command])
    said = str(raised.value)
    assert f"The database {unprepared} has no tables. Run: manage.py migrate." in said
    assert f"VSKILL_DATA_DIR (here {settings.DATA_DIR})" in said
    assert "\n" not in said


def test_a_migration_that_is_missing_is_named(unprepared: Path) -> None:
    call_command("migrate", "submissions", "0001", verbosity=0)
    with pytest.raises(CommandError, match=r"lacks the migration [a-z]+\.\d{4}_\w+ and \d+ more"):
        call_command("queue_status")
    call_command("migrate", verbosity=0)
    call_command("queue_status")


@pytest.mark.parametrize("away", ["unreadable file", "dead server"])
def test_a_database_that_is_away_is_no_reason_to_refuse(
    tmp_path: Path, away: str, django_db_blocker: DjangoDbBlocker
) -> None:
    options = unreadable_file(tmp_path) if away == "unreadable file" else dead_server()
    # Not the mark django_db, which forbids every database but the one that it empties.
    with django_db_blocker.unblock(), absent_database(options):
        require_prepared([ALIAS])


def test_the_look_leaves_no_connection_behind(unprepared: Path) -> None:
    with pytest.raises(DatabaseNotPrepared):
        require_prepared(["default"])
    assert connections["default"].connection is None
    with connections["default"].cursor():
        held = connections["default"].connection
        with pytest.raises(DatabaseNotPrepared):
            require_prepared(["default"])
        assert connections["default"].connection is held


def test_another_database_is_named_with_what_prepares_it(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> None:
    empty = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "empty.sqlite3")}
    wanted = rf"empty\.sqlite3 has no tables.*migrate --database {ALIAS}\."
    with (
        django_db_blocker.unblock(),
        absent_database(empty),
        pytest.raises(DatabaseNotPrepared, match=wanted),
    ):
        require_prepared([ALIAS])


def test_the_place_of_a_database_is_told_without_its_password() -> None:
    with absent_database({**dead_server(), "PASSWORD": "secret"}):
        said = place_of(ALIAS)
    assert said.startswith("nobody@127.0.0.1:")
    assert "secret" not in said
