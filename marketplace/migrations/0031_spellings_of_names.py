"""Keep the words of names with their spellings, by which a word with a slip in it is found.

A skill that the previous release publishes after this adds no words. Whatever changes the skill adds them, and
verify_store finds them missing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.db import migrations, models

import vskill.kv.fields
from marketplace.search.spelling import spellings, words_of

AT_ONCE = 1000


def add_words(apps: Any, schema_editor: Any) -> None:
    """Add the words of the names of every environment."""
    alias = schema_editor.connection.alias
    documents = apps.get_model("marketplace", "SearchDocument").objects.using(alias)
    model = apps.get_model("marketplace", "NameSpelling")
    words: defaultdict[str, set[str]] = defaultdict(set)
    for namespace, name in documents.values_list("namespace", "name").iterator(AT_ONCE):
        words[namespace] |= words_of([name])
    for namespace, held in words.items():
        rows = (model(namespace=namespace, spelling=one, word=word) for word in sorted(held) for one in spellings(word))
        model.objects.using(alias).bulk_create(rows, batch_size=AT_ONCE)


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
        migrations.RunPython(add_words, migrations.RunPython.noop, elidable=True),
    ]
