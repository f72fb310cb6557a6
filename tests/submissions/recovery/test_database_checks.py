"""Damaged files of a database are found by the database's own checks."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from submissions.recovery.database_checks import database_faults
from vskill.environments import WorkerEnv


@pytest.mark.django_db
def test_a_database_in_order_has_no_faults(env: WorkerEnv) -> None:
    assert database_faults(env) == []


def damaged(path: Path) -> None:
    """Write a database whose last pages are overwritten."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE one (id INTEGER PRIMARY KEY, value TEXT)")
        connection.executemany("INSERT INTO one (value) VALUES (?)", [("x" * 500,)] * 200)
    connection.close()
    with path.open("r+b") as file:
        file.seek(4096 * 8)
        file.write(b"\xff" * 4096 * 4)


@pytest.mark.database
def test_a_corrupt_page_of_sqlite_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> None:
    damaged(tmp_path / "damaged.sqlite3")
    options = {**connections.settings["default"], "ENGINE": "django.db.backends.sqlite3"}
    monkeypatch.setitem(
        connections.settings, "damaged", {**options, "NAME": str(tmp_path / "damaged.sqlite3"), "OPTIONS": {}}
    )
    with django_db_blocker.unblock():
        try:
            faults = database_faults(WorkerEnv(name="damaged", database="damaged"))
        finally:
            connections["damaged"].close()
            del connections["damaged"]
    assert faults
    assert all(name == "database" for name, _detail in faults)


@pytest.mark.django_db
@pytest.mark.postgres
@pytest.mark.skipif("connections['default'].vendor != 'postgresql'", reason="amcheck is PostgreSQL's")
def test_the_indexes_of_postgresql_are_checked_where_amcheck_is_installed(env: WorkerEnv) -> None:
    with connections[env.database].cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'amcheck'")
        if cursor.fetchone() is None:
            pytest.skip("this server comes without amcheck")
        cursor.execute("CREATE EXTENSION amcheck")
    assert database_faults(env) == []
