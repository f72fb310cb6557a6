"""Let the index of a publisher's skills tell which of them are shown, and count what each published on each day."""

from __future__ import annotations

from datetime import UTC
from typing import Any, ClassVar

from django.db import migrations, models
from django.db.models.functions import TruncDate

AT_ONCE = 1000


def fill_days(apps: Any, schema_editor: Any) -> None:
    """Count the listed skills of each publisher that were first published on each day (UTC)."""
    alias = schema_editor.connection.alias
    counts = apps.get_model("marketplace", "SkillCount").objects.using(alias)
    skills = apps.get_model("marketplace", "SkillEntry").objects.using(alias).filter(visibility="visible")
    listed = skills.exclude(slug="").exclude(latest_version="").exclude(published_at=None).exclude(publisher_handle="")
    days = listed.order_by().annotate(day=TruncDate("published_at", tzinfo=UTC))
    found = days.values_list("namespace", "publisher_handle", "day").annotate(models.Count("pk"))
    made = [
        counts.model(
            namespace=namespace, within=f"publisher:{handle}", kind="published", value=day.isoformat(), count=n
        )
        for namespace, handle, day, n in found
    ]
    counts.bulk_create(made, batch_size=AT_ONCE)


class Migration(migrations.Migration):
    """Replace the index of a publisher's skills, and count their days."""

    dependencies: ClassVar[list[Any]] = [("marketplace", "0017_withdrawals_and_agents")]

    operations: ClassVar[list[Any]] = [
        migrations.RemoveIndex(model_name="skillentry", name="skill_publisher"),
        migrations.AddIndex(
            model_name="skillentry",
            index=models.Index(
                fields=["namespace", "publisher_handle", "visibility", "-published_at", "-id"], name="skill_publisher"
            ),
        ),
        migrations.RunPython(fill_days, migrations.RunPython.noop, elidable=True),
    ]
