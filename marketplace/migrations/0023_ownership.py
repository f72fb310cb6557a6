"""Add the tables of who owns a publisher and of skills that changed hands, which the previous release leaves empty."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
import django.db.models.functions.datetime
import vskill.kv.fields
from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    """Add the tables."""

    dependencies: ClassVar[list[tuple[str, str]]] = [
        ("marketplace", "0022_listed_skills"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.CreateModel(
            name="PublisherClaim",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("publisher", vskill.kv.fields.KeyField(max_length=300)),
                ("handle", models.CharField(max_length=200)),
                ("account_id", models.BigIntegerField()),
                ("account_name", models.CharField(max_length=150)),
                ("repo_url", models.CharField(blank=True, max_length=500)),
                ("code", models.CharField(max_length=64)),
                ("state", models.CharField(default="waiting", max_length=16)),
                ("proof", models.CharField(blank=True, max_length=16)),
                ("evidence", models.CharField(blank=True, max_length=600)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
                ("checked_at", models.DateTimeField(blank=True, null=True)),
                ("proven_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("ended_by", models.CharField(blank=True, max_length=150)),
                ("end_reason", models.TextField(blank=True)),
            ],
            options={
                "verbose_name": "claim of a publisher",
                "verbose_name_plural": "claims of publishers",
                "indexes": [
                    models.Index(fields=["namespace", "publisher", "state"], name="claim_publisher"),
                    models.Index(fields=["namespace", "account_id", "state"], name="claim_account"),
                    models.Index(fields=["namespace", "-id"], name="claim_newest"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "proven")),
                        fields=("namespace", "publisher"),
                        name="claim_one_proven",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("state", "waiting")),
                        fields=("namespace", "publisher", "account_id"),
                        name="claim_one_waiting",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SkillTransfer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("from_publisher", vskill.kv.fields.KeyField(max_length=300)),
                ("from_handle", vskill.kv.fields.KeyField(max_length=200)),
                ("from_repo_url", models.CharField(max_length=500)),
                ("from_skill_path", models.CharField(blank=True, max_length=400)),
                ("to_publisher", vskill.kv.fields.KeyField(max_length=300)),
                ("to_handle", vskill.kv.fields.KeyField(max_length=200)),
                ("to_repo_url", models.CharField(max_length=500)),
                ("to_skill_path", models.CharField(blank=True, max_length=400)),
                ("state", models.CharField(default="offered", max_length=16)),
                ("reason", models.TextField(blank=True)),
                ("offered_by", models.CharField(max_length=150)),
                ("decided_by", models.CharField(blank=True, max_length=150)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "skill",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="transfers",
                        to="marketplace.skillentry",
                    ),
                ),
            ],
            options={
                "verbose_name": "transfer of a skill",
                "verbose_name_plural": "transfers of skills",
                "indexes": [
                    models.Index(fields=["namespace", "from_handle", "state"], name="transfer_from"),
                    models.Index(fields=["namespace", "to_publisher", "state"], name="transfer_to"),
                    models.Index(fields=["namespace", "from_publisher", "state"], name="transfer_of"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("state", "offered")),
                        fields=("namespace", "skill"),
                        name="transfer_one_offered",
                    )
                ],
            },
        ),
    ]
