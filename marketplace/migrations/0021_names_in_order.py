"""Let PostgreSQL read the names of skills in the order of a search from an index alone.

Otherwise it reads ten thousand documents, one by one, where few of the names have a word. No name is too long for the
index: of 200 characters each, the name, the name that is shown and the slug take at most 1,900 bytes.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations

TABLE = "marketplace_searchdocument"


def index(_apps: Any, schema_editor: Any) -> None:
    """Make the index on PostgreSQL."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"CREATE INDEX {TABLE}_ordered ON {TABLE} (id) INCLUDE (skill_id, names)", params=None)


def unindex(_apps: Any, schema_editor: Any) -> None:
    """Take the index away again."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(f"DROP INDEX {TABLE}_ordered", params=None)


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0020_provenance"),
    ]

    operations = [
        migrations.RunPython(index, unindex),
    ]
