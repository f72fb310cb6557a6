"""Keep what a version declares beside what it does, and what it refers to."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.functions.datetime
from django.db import migrations, models
from django.db.migrations.operations.base import Operation
from django.db.models import Q

import marketplace.fields
import vskill.kv.fields


class Migration(migrations.Migration):
    """Add a column and a table that the previous release leaves empty."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("marketplace", "0009_folder_of_version")]
    operations: ClassVar[list[Operation]] = [
        migrations.AddField(
            model_name="skillversion",
            name="contract",
            field=marketplace.fields.JSONTextField(blank=True, null=True),
        ),
        migrations.CreateModel(
            name="ReferenceEntry",
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
                ("url", models.CharField(blank=True, default="", max_length=500)),
                ("host", models.CharField(blank=True, default="", max_length=255)),
                ("due_at", models.DateTimeField(blank=True, null=True)),
                ("failures", models.IntegerField(default=0)),
                (
                    "version_number",
                    models.BigIntegerField(blank=True, help_text="the row of the version that uses it", null=True),
                ),
                ("changed_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "verbose_name": "reference",
                "abstract": False,
                "indexes": [
                    models.Index(
                        condition=Q(expires_at__isnull=False),
                        fields=["namespace", "expires_at"],
                        name="marketplace_referenceentry_e",
                    ),
                    models.Index(
                        condition=Q(due_at__isnull=False), fields=["namespace", "due_at"], name="reference_due"
                    ),
                    models.Index(
                        condition=Q(version_number__isnull=False),
                        fields=["namespace", "version_number"],
                        name="reference_of_version",
                    ),
                    models.Index(
                        condition=Q(changed_at__isnull=False),
                        fields=["namespace", "-changed_at"],
                        name="reference_changed",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("namespace", "key"), name="marketplace_referenceentry_key")
                ],
            },
        ),
    ]
