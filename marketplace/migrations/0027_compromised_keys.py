"""Mark keys as compromised, and keep what they signed when it is signed anew."""

from __future__ import annotations

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0026_places"),
    ]

    operations = [
        migrations.AddField(
            model_name="signingkey",
            name="compromised_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="signingkey",
            name="compromised_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="versionsignature",
            name="doubt",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.CreateModel(
            name="ReplacedSignature",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("statement", models.TextField()),
                ("files", models.TextField()),
                ("signed_at", models.DateTimeField()),
                ("replaced_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "files_key",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="marketplace.signingkey"
                    ),
                ),
                (
                    "key",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="marketplace.signingkey"
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="marketplace.skillversion"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("version", "signed_at"), name="replaced_signature_once")
                ],
            },
        ),
    ]
