"""Add the repository that a version is from, which the previous release leaves empty, as that of the skill."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    """Add the column."""

    dependencies: ClassVar[list[tuple[str, str]]] = [
        ("marketplace", "0024_counted_clients"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.AddField(
            model_name="skillversion",
            name="repo_url",
            field=models.CharField(blank=True, db_default="", default="", max_length=500),
        ),
    ]
