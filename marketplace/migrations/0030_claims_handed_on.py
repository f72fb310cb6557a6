"""Add to claims to whom they are offered, which the previous release leaves empty."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    """Add the columns and their index."""

    dependencies: ClassVar[list[tuple[str, str]]] = [
        ("marketplace", "0029_changelog_of_upload"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.AddField(
            model_name="publisherclaim",
            name="offered_to",
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="publisherclaim",
            name="offered_to_name",
            field=models.CharField(blank=True, db_default="", default="", max_length=150),
        ),
        migrations.AddField(
            model_name="publisherclaim",
            name="offered_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name="publisherclaim",
            index=models.Index(
                condition=models.Q(("offered_to__isnull", False)),
                fields=["namespace", "offered_to"],
                name="claim_offered",
            ),
        ),
    ]
