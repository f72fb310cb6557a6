"""Index the words of texts of SKILL.md that were cut at 300 words or 20,000 characters, up to the bound that holds now."""

from __future__ import annotations

from typing import Any

from django.db import migrations
from django.db.models import F
from django.db.models.functions import Length

from marketplace.search.documents import FIELDS, body_of

AT_ONCE = 500
MOST_WORDS = 300
LONGEST = 20_000


def index_more(apps: Any, schema_editor: Any) -> None:
    """Write the field of each document again whose text was cut."""
    alias = schema_editor.connection.alias
    documents = apps.get_model("marketplace", "SearchDocument").objects.using(alias)
    versions = apps.get_model("marketplace", "SkillVersion").objects.using(alias)
    latest = versions.filter(version=F("skill__latest_version"), skill__search_document__isnull=False)
    held = latest.annotate(length=Length("skill_md")).values_list(
        "pk", "skill__search_document__id", "skill__search_document__body", "length"
    )
    cut = [
        (pk, document)
        for pk, document, body, length in held.iterator(AT_ONCE)
        if body.count(" ") + 1 >= MOST_WORDS or length > LONGEST
    ]
    for start in range(0, len(cut), AT_ONCE):
        part = dict(cut[start : start + AT_ONCE])
        rows = {row.pk: row for row in documents.filter(pk__in=part.values())}
        for pk, text in versions.filter(pk__in=part).values_list("pk", "skill_md"):
            row = rows[part[pk]]
            row.body = body_of(text, {name: getattr(row, name) for name in FIELDS[:-1]})
            row.save(using=alias, update_fields=["body"])


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0034_counts_of_tags"),
    ]

    operations = [
        migrations.RunPython(index_more, migrations.RunPython.noop, elidable=True),
    ]
