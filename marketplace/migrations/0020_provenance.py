"""Make the tables of signed provenance, and note which versions are not signed yet.

What the previous release publishes after this is signed like anything else, and gets its entry of the log then.
"""

import django.db.models.deletion
import django.db.models.functions.datetime
import vskill.kv.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0018_publishers"),
    ]

    operations = [
        migrations.CreateModel(
            name="LogLeaf",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("number", models.BigIntegerField()),
                (
                    "version_number",
                    models.BigIntegerField(blank=True, help_text="the row of the version that it is about", null=True),
                ),
                ("kind", models.CharField(max_length=32)),
                ("body", models.TextField()),
                ("leaf_hash", models.CharField(max_length=64)),
            ],
            options={
                "verbose_name_plural": "log leaves",
            },
        ),
        migrations.CreateModel(
            name="LogNode",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("level", models.SmallIntegerField()),
                ("number", models.BigIntegerField()),
                ("node_hash", models.CharField(max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name="LogPending",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                (
                    "version_number",
                    models.BigIntegerField(blank=True, help_text="the row of the version that it is about", null=True),
                ),
                ("kind", models.CharField(max_length=32)),
                ("body", models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name="LogState",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", vskill.kv.fields.KeyField(max_length=64, unique=True)),
                ("size", models.BigIntegerField(default=0)),
                ("peaks", models.TextField(blank=True, default="")),
            ],
        ),
        migrations.CreateModel(
            name="SigningKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("key_id", models.CharField(max_length=64)),
                ("algorithm", models.CharField(max_length=32)),
                ("public_key", models.TextField()),
                ("since", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("until", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="TreeHead",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("size", models.BigIntegerField()),
                ("root_hash", models.CharField(max_length=64)),
                ("note", models.TextField()),
                ("signed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name="VersionSignature",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("statement", models.TextField()),
                ("files", models.TextField()),
                ("signed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name": "signature of a version",
                "verbose_name_plural": "signatures of versions",
            },
        ),
        migrations.AddField(
            model_name="skillversion",
            name="signed_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddIndex(
            model_name="skillversion",
            index=models.Index(
                condition=models.Q(("signed_at", None)), fields=["namespace", "-id"], name="version_unsigned"
            ),
        ),
        migrations.AddIndex(
            model_name="logleaf",
            index=models.Index(fields=["namespace", "version_number", "number"], name="log_leaf_version"),
        ),
        migrations.AddConstraint(
            model_name="logleaf",
            constraint=models.UniqueConstraint(fields=("namespace", "number"), name="log_leaf_once"),
        ),
        migrations.AddConstraint(
            model_name="lognode",
            constraint=models.UniqueConstraint(fields=("namespace", "level", "number"), name="log_node_once"),
        ),
        migrations.AddIndex(
            model_name="logpending",
            index=models.Index(fields=["namespace", "id"], name="log_pending"),
        ),
        migrations.AddIndex(
            model_name="logpending",
            index=models.Index(fields=["namespace", "version_number"], name="log_pending_version"),
        ),
        migrations.AddConstraint(
            model_name="signingkey",
            constraint=models.UniqueConstraint(fields=("namespace", "key_id"), name="signing_key_once"),
        ),
        migrations.AddField(
            model_name="treehead",
            name="key",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="marketplace.signingkey"
            ),
        ),
        migrations.AddField(
            model_name="versionsignature",
            name="files_key",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="marketplace.signingkey"
            ),
        ),
        migrations.AddField(
            model_name="versionsignature",
            name="key",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="marketplace.signingkey"
            ),
        ),
        migrations.AddField(
            model_name="versionsignature",
            name="version",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="signature", to="marketplace.skillversion"
            ),
        ),
        migrations.AddConstraint(
            model_name="treehead",
            constraint=models.UniqueConstraint(fields=("namespace", "size", "key"), name="tree_head_once"),
        ),
    ]
