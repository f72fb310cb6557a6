"""Add to events whether a publisher did it, which the previous release leaves empty, as unknown."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    """Add the column."""

    dependencies: ClassVar[list[tuple[str, str]]] = [
        ("marketplace", "0027_compromised_keys"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.AddField(
            model_name="historyevent",
            name="by_publisher",
            field=models.BooleanField(null=True),
        ),
    ]
