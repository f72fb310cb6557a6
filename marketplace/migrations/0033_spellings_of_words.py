"""Keep the spellings of the words of tags, owners, repositories and descriptions beside those of names.

The table of the words of names alone, which was never in a release, gives way to this one, which is filled from the
documents. A skill that the previous release publishes after this adds no words. Whatever changes the skill adds them,
and verify_store finds them missing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.db import migrations, models

import vskill.kv.fields
from marketplace.records import Visibility
from marketplace.search.spelling import WordUse, spellings, words_of

AT_ONCE = 1000
FIELDS = ("name", "tags", "owner", "repository", "description")


def add_words(apps: Any, schema_editor: Any) -> None:
    """Add the words of the documents of every environment."""
    alias = schema_editor.connection.alias
    documents = apps.get_model("marketplace", "SearchDocument").objects.using(alias)
    model = apps.get_model("marketplace", "WordSpelling")
    words: defaultdict[str, set[WordUse]] = defaultdict(set)
    for namespace, shown_as, *texts in documents.values_list("namespace", "skill__visibility", *FIELDS).iterator(
        AT_ONCE
    ):
        fields = dict(zip(FIELDS, texts, strict=True))
        words[namespace] |= words_of(fields, is_public=shown_as == Visibility.VISIBLE)
    for namespace, uses in words.items():
        rows = (
            model(namespace=namespace, spelling=one, word=word, in_names=in_names)
            for word, in_names in sorted(uses)
            if in_names or WordUse(word, True) not in uses
            for one in spellings(word)
        )
        model.objects.using(alias).bulk_create(rows, batch_size=AT_ONCE)


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0032_words_of_documents"),
    ]

    operations = [
        migrations.CreateModel(
            name="WordSpelling",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("spelling", vskill.kv.fields.KeyField(max_length=32)),
                ("word", vskill.kv.fields.KeyField(max_length=32)),
                ("in_names", models.BooleanField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("namespace", "spelling", "word", "in_names"), name="word_spelling_once"
                    )
                ],
            },
        ),
        migrations.RunPython(add_words, migrations.RunPython.noop, elidable=True),
        migrations.DeleteModel(name="NameSpelling"),
    ]
