"""Keep how many skills have each pair of values of two facets, and count those that are there."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations

# Counted before.
TOGETHER = "('capability', 'publisher', 'verdict')"
FILL = f"""
INSERT INTO marketplace_skillcount (namespace, within, kind, value, count)
WITH skill AS (SELECT id, namespace, verdict {{c}} AS v, publisher_handle {{c}} AS p, license {{c}} AS l
               FROM marketplace_skillentry WHERE visibility = 'visible' AND slug <> '' AND latest_version <> ''),
     held AS (SELECT id, namespace, 'verdict' {{c}} AS kind, v AS value FROM skill WHERE v <> ''
              UNION ALL SELECT id, namespace, 'publisher', p FROM skill WHERE p <> ''
              UNION ALL SELECT id, namespace, 'license', l FROM skill WHERE l <> ''
              UNION ALL SELECT skill.id, skill.namespace, f.kind {{c}}, f.value FROM skill
              JOIN marketplace_skillfacet f ON f.skill_id = skill.id),
     pair AS (SELECT a.namespace, a.kind AS kind, a.value AS value, b.kind AS other, b.value AS beside, COUNT(*) AS n
              FROM held a JOIN held b ON b.id = a.id AND a.kind < b.kind
              WHERE NOT (a.kind IN {TOGETHER} AND b.kind IN {TOGETHER})
              GROUP BY a.namespace, a.kind, a.value, b.kind, b.value)
SELECT * FROM (SELECT namespace, kind || ':' || value, other, beside, n FROM pair
               UNION ALL SELECT namespace, other || ':' || beside, kind, value, n FROM pair) AS found
WHERE TRUE ON CONFLICT DO NOTHING
"""  # noqa: S608 - our own names


def fill(_apps: Any, schema_editor: Any) -> None:
    """Count the listed skills with each pair; what an earlier release publishes after this is mended every hour."""
    # Keys have the collation C on PostgreSQL, and a union of columns with two collations has none.
    collation = 'COLLATE "C"' if schema_editor.connection.vendor == "postgresql" else ""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(FILL.format(c=collation))


class Migration(migrations.Migration):
    """Add the rows."""

    dependencies: ClassVar[list[Any]] = [("marketplace", "0036_covering_orders_of_lists")]

    operations: ClassVar[list[Any]] = [
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
