"""Keep the folder of each version, because a skill may move within its repository."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    """Add a column that the previous release leaves empty."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("marketplace", "0007_recent_downloads")]
    operations: ClassVar[list[Operation]] = [
        migrations.AddField(
            model_name="skillversion",
            name="skill_path",
            field=models.CharField(blank=True, max_length=400, null=True),
        ),
    ]
