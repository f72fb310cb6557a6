"""Statements that end only if somebody ends them, and what the database says of those that run."""

from __future__ import annotations

import threading
from typing import Any, Final

from django.db import connection

# Of no word in it is a name of ours, so that only these statements have it.
MARK: Final = "endless_numbers"
NUMBERS: Final = f"WITH RECURSIVE {MARK}(i) AS (SELECT 0 UNION ALL SELECT (i + 1) % 1000 FROM {MARK})"  # noqa: S608 - our own constant


def endless() -> Any:
    """Count numbers without end on the connection of the calling thread."""
    with connection.cursor() as cursor:
        cursor.execute(f"{NUMBERS} SELECT count(*) FROM {MARK}")  # noqa: S608 - our own constant
        return cursor.fetchone()


def endless_after_the_first_row() -> Any:
    """Read rows of which the second never comes; SQLite looks for it only when it is fetched."""
    with connection.cursor() as cursor:
        cursor.execute(f"{NUMBERS} SELECT i FROM (SELECT 1 AS i UNION ALL SELECT i FROM {MARK} WHERE i < 0) AS shown")  # noqa: S608 - our own constant
        return cursor.fetchall()


def one() -> int:
    """Return 1 from the database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return int(cursor.fetchone()[0])


def running() -> int:
    """Return how many endless statements run in the PostgreSQL server."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND state = 'active' AND position(%(mark)s IN query) > 0",
            {"mark": MARK},
        )
        return int(cursor.fetchone()[0])


class Watched:
    """A function that says when it has begun on its thread."""

    def __init__(self, func: Any) -> None:
        self._func = func
        self.begun = threading.Event()

    def __call__(self) -> Any:
        self.begun.set()
        return self._func()
