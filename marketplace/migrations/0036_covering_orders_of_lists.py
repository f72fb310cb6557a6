"""Give the indexes of the orders of lists what a list asks of each skill, which PostgreSQL then reads from them.

They are made beside the old ones, so that nobody waits who reads or writes meanwhile. SQLite reads it from the rows.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

TABLE = "marketplace_skillentry"
ASKED = ("slug", "latest_version", "verdict", "license")
# Each index with its columns, as the database and as models name them, and what it has besides.
INDEXES = {
    "skill_newest": ("published_at DESC, id DESC", ["-published_at", "-id"], [*ASKED]),
    "skill_changed": ("changed_at DESC, id DESC", ["-changed_at", "-id"], [*ASKED]),
    "skill_downloads": ("downloads DESC, id DESC", ["-downloads", "-id"], [*ASKED]),
    "skill_trending": ("recent_downloads DESC, id DESC", ["-recent_downloads", "-id"], [*ASKED]),
    "skill_slug": ("slug", ["slug"], ["id", *ASKED[1:]]),
}


def replace(schema_editor: Any, *, covering: bool) -> None:
    """Make each index under another name, and give it its own in place of the one before."""
    if schema_editor.connection.vendor != "postgresql":
        return
    for name, (columns, _fields, besides) in INDEXES.items():
        include = f" INCLUDE ({', '.join(besides)})" if covering else ""
        for statement in (
            # Of a run that was stopped.
            f"DROP INDEX IF EXISTS {name}_next",
            f"CREATE INDEX CONCURRENTLY {name}_next ON {TABLE} (namespace, visibility, {columns}){include}",
            f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
            f"ALTER INDEX {name}_next RENAME TO {name}",
        ):
            schema_editor.execute(statement, params=None)


def cover(_apps: Any, schema_editor: Any) -> None:
    """Make the indexes with what lists ask."""
    replace(schema_editor, covering=True)


def uncover(_apps: Any, schema_editor: Any) -> None:
    """Make them as they were."""
    replace(schema_editor, covering=False)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("marketplace", "0035_longer_texts"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(cover, uncover)],
            state_operations=[
                operation
                for name, (_columns, fields, besides) in INDEXES.items()
                for operation in (
                    migrations.RemoveIndex(model_name="skillentry", name=name),
                    migrations.AddIndex(
                        model_name="skillentry",
                        index=models.Index(fields=["namespace", "visibility", *fields], include=besides, name=name),
                    ),
                )
            ],
        ),
    ]
