"""How SQLite is set up for every connection."""

from __future__ import annotations

import pytest
from django.db import connection


@pytest.mark.django_db
@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="says something of SQLite alone")
@pytest.mark.parametrize(
    ("pragma", "value"),
    [("journal_mode", "wal"), ("synchronous", 2), ("temp_store", 2)],
    ids=["readers beside a writer", "what was accepted survives a power failure", "no temporary files"],
)
def test_a_connection_is_set_up(pragma: str, value: str | int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {pragma}")
        assert cursor.fetchone()[0] == value
