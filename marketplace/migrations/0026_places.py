"""Keep where skills were: the folders that they moved from and those that held their content as well.

A change of this kind that the previous release makes after this is not in the table.
"""

from __future__ import annotations

from typing import Any, ClassVar

import django.db.models.deletion
from django.db import migrations, models
from django.db.migrations.operations.base import Operation

from marketplace.records import SkillRecord
from marketplace.skills.publishers import skill_identity
from vskill.kv.codec import decode

AT_ONCE = 500


def fill(apps: Any, schema_editor: Any) -> None:
    """Write the places that records, versions, transfers and the history tell of."""
    alias = schema_editor.connection.alias
    model = apps.get_model("marketplace", "SkillPlace")
    skills = apps.get_model("marketplace", "SkillEntry").objects.using(alias).exclude(slug="")
    made: dict[tuple[str, int], Any] = {}

    def add(namespace: str, skill: int, repo_url: str, path: str) -> None:
        identity = skill_identity(repo_url, path)
        made[identity, skill] = model(namespace=namespace, identity=identity, skill_id=skill)

    # The lists of folders are in the value; few have one.
    for skill in skills.exclude(value__contains='"alsoAt":[]').iterator(AT_ONCE):
        try:
            record = SkillRecord.from_value(decode(skill.value))
        except ValueError:
            # verify_store tells of it.
            continue
        for path in record.also_at:
            add(skill.namespace, skill.pk, record.repo_url, path)
    versions = apps.get_model("marketplace", "SkillVersion").objects.using(alias).exclude(skill_path=None)
    columns = ("namespace", "skill_id", "repo_url", "skill__repo_url", "skill_path")
    for namespace, skill_id, repo_url, of_skill, path in versions.values_list(*columns).iterator(AT_ONCE):
        add(namespace, skill_id, repo_url or of_skill, path)
    moved = apps.get_model("marketplace", "HistoryEvent").objects.using(alias).filter(action="moved")
    events = moved.exclude(skill_id=None).values_list("namespace", "skill_id", "reason")
    addresses = dict(skills.filter(pk__in=moved.values("skill_id")).values_list("pk", "repo_url"))
    for namespace, skill_id, reason in events.iterator(AT_ONCE):
        # "from A to B"; a folder may have the word in its own name, so each half of it is taken.
        words = reason.removeprefix("from ").split(" to ")
        for cut in range(1, len(words)):
            for path in (" to ".join(words[:cut]), " to ".join(words[cut:])):
                add(namespace, skill_id, addresses.get(skill_id, ""), "" if path == "." else path)
    for one in apps.get_model("marketplace", "SkillTransfer").objects.using(alias).filter(state__in=("done", "undone")):
        add(one.namespace, one.skill_id, one.from_repo_url, one.from_skill_path)
        add(one.namespace, one.skill_id, one.to_repo_url, one.to_skill_path)
    model.objects.using(alias).bulk_create(made.values(), AT_ONCE, ignore_conflicts=True)


class Migration(migrations.Migration):
    """Add the table and fill it."""

    dependencies: ClassVar[list[tuple[str, str]]] = [
        ("marketplace", "0025_version_source"),
    ]

    operations: ClassVar[list[Operation]] = [
        migrations.CreateModel(
            name="SkillPlace",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("identity", models.CharField(max_length=64)),
                (
                    "skill",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="places",
                        to="marketplace.skillentry",
                    ),
                ),
            ],
            options={
                "verbose_name": "place of a skill",
                "verbose_name_plural": "places of skills",
                "constraints": [models.UniqueConstraint(fields=("identity", "skill"), name="place_once")],
            },
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
