"""Keep for each submission of a skill that moves to another folder which skill that is."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations
from django.db.migrations.operations.base import Operation

from marketplace.skills.publishers import skill_identity
from vskill.kv.codec import decode

AT_ONCE = 500


def fill(apps: Any, schema_editor: Any) -> None:
    """Write a place of the skill that each submission continues."""
    alias = schema_editor.connection.alias
    model = apps.get_model("marketplace", "SkillPlace")
    skills = apps.get_model("marketplace", "SkillEntry").objects.using(alias)
    entries = apps.get_model("submissions", "SubmissionEntry")._base_manager.using(alias)
    rows = entries.filter(value__contains='"continues":"').exclude(identity="").order_by("pk")
    for row in rows.iterator(AT_ONCE):
        try:
            value = decode(row.value)
            former = skill_identity(value["repoUrl"], value["continues"])
        except (ValueError, LookupError, TypeError, AttributeError):
            # verify_store tells of it.
            continue
        of_namespace = skills.filter(namespace=row.namespace)
        found = [
            *of_namespace.filter(identity=former).values_list("pk", flat=True),
            *of_namespace.filter(places__identity=former).values_list("pk", flat=True),
        ]
        places = [model(namespace=row.namespace, identity=row.identity, skill_id=one) for one in dict.fromkeys(found)]
        model.objects.using(alias).bulk_create(places, ignore_conflicts=True)


class Migration(migrations.Migration):
    """Fill the table of places."""

    dependencies: ClassVar[list[tuple[str, str]]] = [
        ("marketplace", "0026_places"),
        ("submissions", "0014_notification_preferences"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
