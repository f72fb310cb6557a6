"""Keep a document of each skill, and let the full-text engine of the database index it.

SQLite: an FTS5 table over the documents, which triggers keep in step. PostgreSQL: generated text vectors with GIN. A
skill that the previous release publishes after this has no document. recount_downloads, which runs every hour, mends
that.
"""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

from marketplace.records import SkillRecord
from marketplace.search.documents import document_of, position_of
from vskill.kv.codec import decode

AT_ONCE = 500
FIELDS = ("name", "tags", "owner", "repository", "description", "body")
TABLE = "marketplace_searchdocument"
FTS = "marketplace_searchfts"


def _sqlite() -> list[str]:
    columns = ", ".join(FIELDS)
    old, new = (", ".join(f"{row}.{name}" for name in FIELDS) for row in ("old", "new"))
    delete = f"INSERT INTO {FTS}({FTS}, rowid, {columns}) VALUES ('delete', old.id, {old});"  # noqa: S608 - our own names
    insert = f"INSERT INTO {FTS}(rowid, {columns}) VALUES (new.id, {new});"  # noqa: S608 - our own names
    # Tokens are separated by spaces, and are made of letters and digits of any script.
    options = f"content='{TABLE}', content_rowid='id', tokenize='ascii', prefix='1 2 3', detail='column', columnsize=0"
    return [
        f"CREATE VIRTUAL TABLE {FTS} USING fts5({columns}, {options})",
        f"CREATE TRIGGER {TABLE}_added AFTER INSERT ON {TABLE} BEGIN {insert} END",
        f"CREATE TRIGGER {TABLE}_gone AFTER DELETE ON {TABLE} BEGIN {delete} END",
        f"CREATE TRIGGER {TABLE}_changed AFTER UPDATE ON {TABLE} BEGIN {delete} {insert} END",
    ]


def _postgres() -> list[str]:
    def vector(*fields: str) -> str:
        joined = " || ' ' || ".join(fields)
        # The tokens as they are: no parser and no dictionary of the server changes them.
        return (
            f"tsvector GENERATED ALWAYS AS (array_to_tsvector(array_remove(string_to_array({joined}, ' '), ''))) STORED"
        )

    return [
        f"ALTER TABLE {TABLE} ADD COLUMN names {vector('name')}, ADD COLUMN words {vector(*FIELDS)}",
        f"CREATE INDEX {TABLE}_names ON {TABLE} USING gin (names)",
        f"CREATE INDEX {TABLE}_words ON {TABLE} USING gin (words)",
    ]


def index(_apps: Any, schema_editor: Any) -> None:
    """Have the engine of the database index the documents."""
    for statement in _sqlite() if schema_editor.connection.vendor == "sqlite" else _postgres():
        schema_editor.execute(statement, params=None)


def unindex(_apps: Any, schema_editor: Any) -> None:
    """Take the index of SQLite away again; that of PostgreSQL goes with its table."""
    if schema_editor.connection.vendor == "sqlite":
        for name in ("added", "gone", "changed"):
            schema_editor.execute(f"DROP TRIGGER {TABLE}_{name}", params=None)
        schema_editor.execute(f"DROP TABLE {FTS}", params=None)


def fill(apps: Any, schema_editor: Any) -> None:
    """Write the document of each skill."""
    alias = schema_editor.connection.alias
    documents = apps.get_model("marketplace", "SearchDocument")
    versions = apps.get_model("marketplace", "SkillVersion").objects.using(alias)
    skills = apps.get_model("marketplace", "SkillEntry").objects.using(alias).exclude(slug="")
    made = []
    for skill in skills.iterator(AT_ONCE):
        try:
            record = SkillRecord.from_value(decode(skill.value))
        except ValueError:
            # verify_store tells of it.
            continue
        latest = versions.filter(skill_id=skill.pk, version=record.latest_version)
        body = latest.values_list("skill_md", flat=True).first() or ""
        number, texts = position_of(skill.pk, skill.downloads), document_of(record, body)
        made.append(documents(id=number, namespace=skill.namespace, skill_id=skill.pk, **texts))
        if len(made) == AT_ONCE:
            documents.objects.using(alias).bulk_create(made)
            made = []
    documents.objects.using(alias).bulk_create(made)


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0013_visitor_reports"),
    ]

    operations = [
        migrations.CreateModel(
            name="SearchDocument",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("namespace", models.CharField(max_length=64)),
                ("name", models.TextField()),
                ("tags", models.TextField()),
                ("owner", models.TextField()),
                ("repository", models.TextField()),
                ("description", models.TextField()),
                ("body", models.TextField()),
                (
                    "skill",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="search_document",
                        to="marketplace.skillentry",
                    ),
                ),
            ],
        ),
        migrations.RunPython(index, unindex),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
