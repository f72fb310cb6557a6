"""Let PostgreSQL tell from an index alone which skills are listed, with what lists are counted by.

A search looks up some hundred skills. Their rows are wide, and to read each from the table took most of its time.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations

TABLE = "marketplace_skillentry"


def index(_apps: Any, schema_editor: Any) -> None:
    """Make the index on PostgreSQL, for what ``listed_skills`` leaves."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            f"CREATE INDEX {TABLE}_listed ON {TABLE} (id) INCLUDE (namespace, verdict, publisher_handle, license) "
            "WHERE visibility = 'visible' AND slug <> '' AND latest_version <> ''",
            params=None,
        )


def unindex(_apps: Any, schema_editor: Any) -> None:
    """Take the index away again."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP INDEX {TABLE}_listed", params=None)


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0019_followed"),
    ]

    operations = [
        migrations.RunPython(index, unindex),
    ]
