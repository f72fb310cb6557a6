"""Ask the database itself whether its files are in order."""

from __future__ import annotations

from typing import Final

from django.apps import apps
from django.db import DatabaseError, connections, transaction

from vskill.environments import WorkerEnv

# How many faults SQLite lists at the most; a broken file has one for each of its rows.
MOST_FAULTS: Final = 20
_APPS: Final = ("kv", "marketplace", "submissions")


def database_faults(env: WorkerEnv) -> list[tuple[str, str]]:
    """Return what is wrong with the files of the database of ``env``, as pairs of a name and a detail.

    SQLite checks all of its pages (``quick_check``). PostgreSQL checks the indexes of our tables where the extension
    amcheck is installed and may be used, and nothing otherwise.
    """
    if connections[env.database].vendor == "sqlite":
        return _sqlite_faults(env.database)
    return _postgresql_faults(env.database)


def _sqlite_faults(alias: str) -> list[tuple[str, str]]:
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(f"PRAGMA quick_check({MOST_FAULTS})")
            lines = [str(line) for (text,) in cursor.fetchall() for line in str(text).splitlines()]
    except DatabaseError as error:
        lines = [str(error)]
    return [("database", line) for line in lines if line != "ok" and not line.startswith("***")]


def _postgresql_faults(alias: str) -> list[tuple[str, str]]:
    tables = [model._meta.db_table for app in _APPS for model in apps.get_app_config(app).get_models()]
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'amcheck'")
        if cursor.fetchone() is None:
            return []
        cursor.execute(
            "SELECT i.indexrelid, i.indexrelid::regclass::text FROM pg_index AS i "
            "JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS a ON a.oid = c.relam "
            "WHERE a.amname = 'btree' AND i.indisvalid AND i.indrelid::regclass::text = ANY(%(tables)s)",
            {"tables": tables},
        )
        indexes: list[tuple[int, str]] = cursor.fetchall()
    faults = [(name, _index_fault(alias, oid)) for oid, name in indexes]
    return [(name, detail) for name, detail in faults if detail]


def _index_fault(alias: str, oid: int) -> str:
    try:
        with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
            cursor.execute("SELECT bt_index_check(%(index)s::oid::regclass)", {"index": oid})
    except DatabaseError as error:
        text = str(error).strip()
        # Without the right to check there is nothing to report.
        return "" if "permission denied" in text else text
    return ""
