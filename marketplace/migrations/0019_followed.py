"""Add the table of followed repositories, which the previous release leaves empty."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.functions.datetime
import vskill.kv.fields
from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    """Add the table."""

    dependencies: ClassVar[list[tuple[str, str]]] = [
        ("marketplace", "0021_names_in_order"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.CreateModel(
            name="FollowedEntry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("key", vskill.kv.fields.KeyField(max_length=512)),
                ("value", models.TextField()),
                ("metadata", models.TextField(default="{}")),
                ("version", models.BigIntegerField(default=1)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("updated_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("repo_url", models.CharField(blank=True, default="", max_length=500)),
                ("state", models.CharField(blank=True, default="", max_length=16)),
                ("due_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name": "followed repository",
                "verbose_name_plural": "followed repositories",
                "abstract": False,
                "indexes": [
                    models.Index(
                        condition=models.Q(("expires_at__isnull", False)),
                        fields=["namespace", "expires_at"],
                        name="marketplace_followedentry_e",
                    ),
                    models.Index(
                        condition=models.Q(("due_at__isnull", False)),
                        fields=["namespace", "due_at"],
                        name="followed_due",
                    ),
                    models.Index(fields=["namespace", "repo_url"], name="followed_repository"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("namespace", "key"), name="marketplace_followedentry_key")
                ],
            },
        ),
    ]
