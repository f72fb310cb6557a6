"""How SQLite is set up for every connection."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.utils import ConnectionHandler
from pytest_django import DjangoDbBlocker

from vskill import settings as delivered


@pytest.mark.database
@pytest.mark.skipif(connection.vendor != "sqlite", reason="says something of SQLite alone")
@pytest.mark.parametrize(
    ("pragma", "value"),
    [("journal_mode", "wal"), ("synchronous", 2), ("temp_store", 2)],
    ids=["readers beside a writer", "what was accepted survives a power failure", "no temporary files"],
)
def test_a_connection_is_set_up(
    pragma: str, value: str | int, tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    # Not the connection of the tests, which waits for no disk.
    database = {**delivered.DATABASES["default"], "NAME": str(tmp_path / "vskill.sqlite3")}
    opened = ConnectionHandler({DEFAULT_DB_ALIAS: database})[DEFAULT_DB_ALIAS]
    with django_db_blocker.unblock(), contextlib.closing(opened), opened.cursor() as cursor:
        cursor.execute(f"PRAGMA {pragma}")
        assert cursor.fetchone()[0] == value
