"""Keep the downloads of the last days beside the total, so that the list of trending skills follows an index."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import migrations, models
from django.db.models import Sum

DAYS = 7


def fill(apps: Any, schema_editor: Any) -> None:
    """Add up the days that are there; the recurring recount_downloads corrects what is counted meanwhile."""
    alias = schema_editor.connection.alias
    first = datetime.now(UTC).date() - timedelta(days=DAYS - 1)
    days = apps.get_model("marketplace", "DownloadDay").objects.using(alias).filter(day__gte=first)
    skills = apps.get_model("marketplace", "SkillEntry").objects.using(alias)
    for skill_id, count in days.order_by().values_list("skill_id").annotate(Sum("count")):
        skills.filter(pk=skill_id).update(recent_downloads=count)


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0006_address_prefix"),
    ]

    operations = [
        migrations.AddField(
            model_name="skillentry",
            name="recent_downloads",
            # With a default in the database, because the previous release inserts rows without it.
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
        migrations.AddIndex(
            model_name="skillentry",
            index=models.Index(fields=["namespace", "visibility", "-recent_downloads", "-id"], name="skill_trending"),
        ),
    ]
