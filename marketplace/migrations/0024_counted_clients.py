"""Add the table of clients whose download of a version was counted today, which the previous release leaves empty."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    """Add the table."""

    dependencies: ClassVar[list[tuple[str, str]]] = [
        ("marketplace", "0023_ownership"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.CreateModel(
            name="CountedClient",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("day", models.DateField(db_index=True)),
            ],
        ),
    ]
