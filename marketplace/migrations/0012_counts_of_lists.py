"""Keep the counts of lists in tables, and fill them from the skills that are there.

A skill that the previous release publishes after this is not counted. recount_downloads, which runs every hour, finds
and mends that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import vskill.kv.fields
from django.db import migrations, models

AT_ONCE = 2000


def fill(apps: Any, schema_editor: Any) -> None:
    """Count every skill and version that is shown, as the marketplace does for each change."""
    alias = schema_editor.connection.alias

    def rows(name: str) -> Any:
        return apps.get_model("marketplace", name).objects.using(alias)

    capabilities: dict[int, list[str]] = defaultdict(list)
    facets = rows("SkillFacet").filter(kind="capability").values_list("skill_id", "value")
    for skill_id, value in facets.iterator(AT_ONCE):
        capabilities[skill_id].append(value)
    counts: Counter[tuple[str, str, str, str]] = Counter()
    shown = rows("SkillEntry").filter(visibility="visible").exclude(slug="")
    listed = shown.exclude(latest_version="").values_list("pk", "namespace", "verdict", "publisher_handle")
    for pk, namespace, verdict, publisher in listed.iterator(AT_ONCE):
        counts[namespace, "", "total", ""] += 1
        for capability in ("", *capabilities[pk]):
            values = [("publisher", publisher), ("verdict", verdict), ("capability", capability)]
            present = [one for one in values if one[1]]
            for size in range(1, len(present) + 1):
                for chosen in combinations(present, size):
                    if capability and chosen[-1][0] != "capability":
                        # Counted with the empty capability.
                        continue
                    for one in chosen:
                        within = "&".join(f"{kind}:{value}" for kind, value in chosen if kind != one[0])
                        counts[(namespace, within, *one)] += 1
    kept = rows("SkillVersion").filter(quarantined_at__isnull=True, skill__in=shown)
    for namespace, found in kept.order_by().values_list("namespace").annotate(models.Count("pk")):
        counts[namespace, "", "versions", ""] = found
    publishers = Counter(namespace for namespace, within, kind, _value in counts if kind == "publisher" and not within)
    for namespace, found in publishers.items():
        counts[namespace, "", "publishers", ""] = found
    model = apps.get_model("marketplace", "SkillCount")
    made = [
        model(namespace=namespace, within=within, kind=kind, value=value, count=found)
        for (namespace, within, kind, value), found in sorted(counts.items())
    ]
    rows("SkillCount").bulk_create(made, batch_size=AT_ONCE)


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0011_flags_and_known_bad"),
    ]

    operations = [
        migrations.CreateModel(
            name="SkillCount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("within", vskill.kv.fields.KeyField(blank=True, max_length=300)),
                ("kind", vskill.kv.fields.KeyField(max_length=16)),
                ("value", vskill.kv.fields.KeyField(blank=True, max_length=200)),
                ("count", models.BigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="SkillCountChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("namespace", models.CharField(max_length=64)),
                ("within", vskill.kv.fields.KeyField(blank=True, max_length=300)),
                ("kind", vskill.kv.fields.KeyField(max_length=16)),
                ("value", vskill.kv.fields.KeyField(blank=True, max_length=200)),
                ("change", models.IntegerField()),
            ],
        ),
        migrations.AddIndex(
            model_name="skillentry",
            index=models.Index(fields=["namespace", "identity"], name="skill_identity"),
        ),
        migrations.AddIndex(
            model_name="skillversion",
            index=models.Index(fields=["namespace", "-id"], name="version_newest"),
        ),
        migrations.AddIndex(
            model_name="skillcount",
            index=models.Index(fields=["namespace", "within", "kind", "-count", "value"], name="skill_count_highest"),
        ),
        migrations.AddConstraint(
            model_name="skillcount",
            constraint=models.UniqueConstraint(
                fields=("namespace", "within", "kind", "value"), name="skill_count_once"
            ),
        ),
        migrations.AddIndex(
            model_name="skillcountchange",
            index=models.Index(fields=["namespace", "within", "kind", "value"], name="skill_count_change"),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
