import django.db.models.deletion
import django.db.models.functions.datetime
import marketplace.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0010_references"),
    ]

    operations = [
        migrations.CreateModel(
            name="KnownBad",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("name", models.CharField(max_length=200)),
                ("content_hash", models.CharField(blank=True, max_length=64, null=True)),
                ("normal_digest", models.CharField(blank=True, max_length=64, null=True)),
                ("sketch", models.TextField(blank=True, default="")),
                ("reason", models.TextField()),
                ("source", models.CharField(blank=True, default="", max_length=500)),
                ("actor", models.CharField(max_length=150)),
                ("found_on", models.DateField(blank=True, null=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name": "known bad content",
                "verbose_name_plural": "known bad content",
            },
        ),
        migrations.CreateModel(
            name="KnownBadShingle",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("value", models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="LaterScan",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("scan_key", models.CharField(max_length=32)),
                ("verdict", models.CharField(max_length=16)),
                ("accepted_verdict", models.CharField(blank=True, default="", max_length=16)),
                ("verdict_summary", models.TextField(blank=True)),
                ("capabilities", marketplace.fields.JSONTextField(default=list)),
                ("engines", marketplace.fields.JSONTextField(default=list)),
                ("findings", marketplace.fields.JSONTextField(default=list)),
                ("scanned_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name": "later scan",
            },
        ),
        migrations.CreateModel(
            name="SkillFlag",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("kind", models.CharField(max_length=32)),
                ("reason", models.TextField()),
                ("details", marketplace.fields.JSONTextField(default=dict)),
                ("actor", models.CharField(max_length=150)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "verbose_name": "flag",
            },
        ),
        migrations.CreateModel(
            name="VersionShingle",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("value", models.BigIntegerField()),
            ],
        ),
        migrations.AddField(
            model_name="skillentry",
            name="flag_reason",
            field=models.CharField(blank=True, db_default="", default="", max_length=500),
        ),
        migrations.AddField(
            model_name="skillversion",
            name="flag_reason",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="skillversion",
            name="normal_digest",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="skillversion",
            name="scan_key",
            field=models.CharField(blank=True, db_default="", default="", max_length=32),
        ),
        migrations.AddIndex(
            model_name="skillversion",
            index=models.Index(fields=["namespace", "normal_digest"], name="version_normal_digest"),
        ),
        migrations.AddIndex(
            model_name="skillversion",
            index=models.Index(fields=["namespace", "scan_key"], name="version_scan_key"),
        ),
        migrations.AddIndex(
            model_name="knownbad",
            index=models.Index(fields=["namespace", "-id"], name="known_bad_newest"),
        ),
        migrations.AddConstraint(
            model_name="knownbad",
            constraint=models.UniqueConstraint(fields=("namespace", "content_hash"), name="known_bad_content_once"),
        ),
        migrations.AddConstraint(
            model_name="knownbad",
            constraint=models.UniqueConstraint(fields=("namespace", "normal_digest"), name="known_bad_digest_once"),
        ),
        migrations.AddField(
            model_name="knownbadshingle",
            name="entry",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="shingles", to="marketplace.knownbad"
            ),
        ),
        migrations.AddField(
            model_name="laterscan",
            name="version",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.PROTECT, related_name="later_scan", to="marketplace.skillversion"
            ),
        ),
        migrations.AddField(
            model_name="skillflag",
            name="skill",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="flags", to="marketplace.skillentry"
            ),
        ),
        migrations.AddField(
            model_name="skillflag",
            name="version",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="flags", to="marketplace.skillversion"
            ),
        ),
        migrations.AddField(
            model_name="versionshingle",
            name="version",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="shingles", to="marketplace.skillversion"
            ),
        ),
        migrations.AddConstraint(
            model_name="knownbadshingle",
            constraint=models.UniqueConstraint(fields=("namespace", "value", "entry"), name="known_bad_shingle_once"),
        ),
        migrations.AddIndex(
            model_name="laterscan",
            index=models.Index(fields=["namespace", "-id"], name="later_scan_newest"),
        ),
        migrations.AddIndex(
            model_name="skillflag",
            index=models.Index(fields=["namespace", "-id"], name="flag_newest"),
        ),
        migrations.AddConstraint(
            model_name="skillflag",
            constraint=models.UniqueConstraint(fields=("version", "kind"), name="flag_once"),
        ),
        migrations.AddConstraint(
            model_name="versionshingle",
            constraint=models.UniqueConstraint(fields=("namespace", "value", "version"), name="version_shingle_once"),
        ),
    ]
