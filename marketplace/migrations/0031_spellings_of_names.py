"""Make the table of the words of names with their spellings; 0033 puts that of all words in its place."""

from __future__ import annotations

from django.db import migrations, models

import vskill.kv.fields


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0030_claims_handed_on"),
    ]

    operations = [
        migrations.CreateModel(
            name="NameSpelling",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("spelling", vskill.kv.fields.KeyField(max_length=32)),
                ("word", vskill.kv.fields.KeyField(max_length=32)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("namespace", "spelling", "word"), name="name_spelling_once")
                ],
            },
        ),
    ]
