"""Keep how many skills have each licence, tag and agent, and count those that are there."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import migrations, models

AT_ONCE = 1000


def fill(apps: Any, schema_editor: Any) -> None:
    """Count the listed skills with each value; what an earlier release publishes after this is mended every hour."""
    alias = schema_editor.connection.alias
    counts = apps.get_model("marketplace", "SkillCount").objects.using(alias)
    shown = apps.get_model("marketplace", "SkillEntry").objects.using(alias).filter(visibility="visible")
    listed = shown.exclude(slug="").exclude(latest_version="")
    licenses = listed.exclude(license="").order_by().values_list("namespace", "license").annotate(models.Count("pk"))
    found = [(namespace, "license", value, count) for namespace, value, count in licenses]
    facets = apps.get_model("marketplace", "SkillFacet").objects.using(alias).filter(kind__in=("tag", "agent"))
    of_listed = facets.filter(skill__in=listed).order_by().values_list("skill__namespace", "kind", "value")
    found += of_listed.annotate(models.Count("pk"))
    made = [counts.model(namespace=one[0], within="", kind=one[1], value=one[2], count=one[3]) for one in found]
    counts.bulk_create(made, batch_size=AT_ONCE)


class Migration(migrations.Migration):
    """Add the rows."""

    dependencies: ClassVar[list[Any]] = [("marketplace", "0033_spellings_of_words")]

    operations: ClassVar[list[Any]] = [
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
