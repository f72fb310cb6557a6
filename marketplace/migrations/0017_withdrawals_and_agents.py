"""Find withdrawn versions by an index, note the agents that skills are made for, and divide scripts without spaces.

A skill that the previous release publishes after this has the tokens of that one until it is written again, and no
agents.
"""

from __future__ import annotations

import re
from typing import Any

from django.db import migrations, models
from django.db.models import Q

from marketplace.records import SkillRecord
from marketplace.search.documents import document_of
from marketplace.skills.agents import agents_of
from vskill.kv.codec import decode

AT_ONCE = 500
# Hebrew to Balinese, and the blocks of other scripts of South East Asia: what has vowel signs or no spaces.
DIVIDED = re.compile("[\u0590-\u1cff\ua800-\uabff]")


def fill(apps: Any, schema_editor: Any) -> None:
    """Write the agents of each skill, and the documents whose texts are divided in another way now."""
    alias = schema_editor.connection.alias
    documents = apps.get_model("marketplace", "SearchDocument").objects.using(alias)
    versions = apps.get_model("marketplace", "SkillVersion").objects.using(alias)
    facets = apps.get_model("marketplace", "SkillFacet")
    skills = apps.get_model("marketplace", "SkillEntry").objects.using(alias).exclude(slug="")
    made = []
    for skill in skills.iterator(AT_ONCE):
        try:
            record = SkillRecord.from_value(decode(skill.value))
        except ValueError:
            # verify_store tells of it.
            continue
        made += [
            facets(namespace=skill.namespace, kind="agent", value=agent, skill_id=skill.pk)
            for agent in agents_of(record)
        ]
    facets.objects.using(alias).bulk_create(made, AT_ONCE, ignore_conflicts=True)
    fields = ("name", "tags", "owner", "repository", "description", "body")
    for number, skill_id, *texts in documents.values_list("id", "skill_id", *fields).iterator(AT_ONCE):
        if not any(map(DIVIDED.search, texts)):
            continue
        skill = skills.get(pk=skill_id)
        try:
            record = SkillRecord.from_value(decode(skill.value))
        except ValueError:
            continue
        latest = versions.filter(skill_id=skill_id, version=record.latest_version)
        body = latest.values_list("skill_md", flat=True).first() or ""
        documents.filter(pk=number).update(**document_of(record, body))


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0016_past_scans_and_activity"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="skillversion",
            index=models.Index(
                fields=["namespace", "-yanked_at", "-id"], condition=Q(yanked_at__isnull=False), name="version_yanked"
            ),
        ),
        migrations.AddIndex(
            model_name="skillversion",
            index=models.Index(
                fields=["namespace", "-quarantined_at", "-id"],
                condition=Q(quarantined_at__isnull=False),
                name="version_quarantined",
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
