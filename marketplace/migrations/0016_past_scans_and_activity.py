"""Keep what later scans came to, and count publications and downloads of each day; both begin with what is there.

What the previous release publishes, counts and scans after this is found and mended: the counts by recount_downloads,
which runs every hour, and scans by verify_store.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC
from typing import Any

import django.db.models.deletion
import marketplace.fields
from django.db import migrations, models
from django.db.models.functions import TruncDate

AT_ONCE = 1000


def fill_scans(apps: Any, schema_editor: Any) -> None:
    """Begin the history of each version that was scanned again with the scan that is known of it."""
    alias = schema_editor.connection.alias
    past = apps.get_model("marketplace", "PastScan")
    made = []
    for later in apps.get_model("marketplace", "LaterScan").objects.using(alias).order_by("pk").iterator(AT_ONCE):
        found = Counter(str(one.get("severity", "")) for one in later.findings if one.get("kind") != "coverage")
        made.append(
            past(
                namespace=later.namespace,
                version_id=later.version_id,
                scanner="",
                outcome=later.verdict,
                engines=later.engines,
                findings=dict(sorted(found.items())),
                first_at=later.scanned_at,
                last_at=later.scanned_at,
            )
        )
        if len(made) == AT_ONCE:
            past.objects.using(alias).bulk_create(made)
            made = []
    past.objects.using(alias).bulk_create(made)


def fill_days(apps: Any, schema_editor: Any) -> None:
    """Count the listed skills that were first published on each day, and the downloads of each day (UTC)."""
    alias = schema_editor.connection.alias
    counts = apps.get_model("marketplace", "SkillCount")
    skills = apps.get_model("marketplace", "SkillEntry").objects.using(alias).filter(visibility="visible")
    listed = skills.exclude(slug="").exclude(latest_version="").exclude(published_at=None).order_by()
    published = listed.annotate(day=TruncDate("published_at", tzinfo=UTC)).values_list("namespace", "day")
    downloads = apps.get_model("marketplace", "DownloadDay").objects.using(alias).order_by()
    found = [
        ("published", published.annotate(models.Count("pk"))),
        ("downloads", downloads.values_list("namespace", "day").annotate(models.Sum("count"))),
    ]
    made = [
        counts(namespace=namespace, within="", kind=kind, value=day.isoformat(), count=count)
        for kind, rows in found
        for namespace, day, count in rows
    ]
    counts.objects.using(alias).bulk_create(made, batch_size=AT_ONCE)


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0015_collections"),
    ]

    operations = [
        migrations.CreateModel(
            name="PastScan",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("scanner", models.CharField(blank=True, max_length=100)),
                ("outcome", models.CharField(max_length=16)),
                ("engines", marketplace.fields.JSONTextField(default=list)),
                ("findings", marketplace.fields.JSONTextField(default=dict)),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("times", models.IntegerField(default=1)),
                (
                    "version",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="past_scans",
                        to="marketplace.skillversion",
                    ),
                ),
            ],
            options={
                "verbose_name": "past scan",
                "indexes": [models.Index(fields=["version", "scanner", "-id"], name="past_scan_newest")],
            },
        ),
        migrations.RunPython(fill_scans, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(fill_days, migrations.RunPython.noop, elidable=True),
    ]
