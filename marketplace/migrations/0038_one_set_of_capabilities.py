"""Let each skill be listed by all that its latest version can do: what its contract says, and what engines called it.

It goes through the skills in parts, each a transaction of its own, so that the previous release goes on publishing;
what that one publishes meanwhile is listed by the names of the engines until ``verify_store`` or a scan renews it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from django.db import migrations, transaction
from django.db.models import F

from marketplace.skills.capability_names import asked_names
from vskill.kv.codec import decode, encode

AT_ONCE = 500
Facets = Iterable[tuple[str, str]]


def renew(apps: Any, schema_editor: Any) -> None:
    """Write the capabilities of each skill, its facets and what changes in the counts; a second run changes nothing."""
    alias = schema_editor.connection.alias
    skills = apps.get_model("marketplace", "SkillEntry")._base_manager.using(alias).exclude(slug="")
    # By publishers, so that one change of each of their counts is written for many skills.
    keys = list(skills.order_by("namespace", "publisher_handle", "pk").values_list("pk", flat=True))
    for start in range(0, len(keys), AT_ONCE):
        with transaction.atomic(using=alias):
            renew_some(apps, alias, keys[start : start + AT_ONCE])


def renew_some(apps: Any, alias: str, keys: list[int]) -> None:
    """Write the capabilities of the skills with these keys."""
    entries = apps.get_model("marketplace", "SkillEntry")._base_manager.using(alias)
    facets = apps.get_model("marketplace", "SkillFacet").objects.using(alias)
    changes = apps.get_model("marketplace", "SkillCountChange").objects.using(alias)
    versions = apps.get_model("marketplace", "SkillVersion")._base_manager.using(alias)
    rows = list(entries.filter(pk__in=keys).order_by("pk").select_for_update())
    latest = versions.filter(skill_id__in=keys, version=F("skill__latest_version"))
    can = {one[0]: asked_names(*one[1:]) for one in latest.values_list("skill_id", "capabilities", "contract")}
    held: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
    others = facets.filter(skill_id__in=keys).exclude(kind="capability")
    for skill_id, kind, value in others.values_list("skill_id", "kind", "value"):
        held[skill_id].append((kind, value))
    made, sums, renewed = [], Counter[tuple[str, str, str, str]](), []
    for row in rows:
        try:
            said = decode(row.value)
        except ValueError:
            # verify_store tells of it.
            continue
        if row.pk not in can or not isinstance(said, dict) or said.get("capabilities") == list(can[row.pk]):
            continue
        before, after = said.get("capabilities"), can[row.pk]
        said["capabilities"] = list(after)
        entries.filter(pk=row.pk).update(value=encode(said), version=F("version") + 1)
        renewed.append(row.pk)
        made += [
            facets.model(namespace=row.namespace, kind="capability", value=name, skill_id=row.pk)
            for name in dict.fromkeys(one[:64] for one in after)
        ]
        sums.subtract(counted(row, held[row.pk], before if isinstance(before, list) else []))
        sums.update(counted(row, held[row.pk], after))
    facets.filter(skill_id__in=renewed, kind="capability").delete()
    facets.bulk_create(made, AT_ONCE)
    changes.bulk_create(
        [
            changes.model(namespace=key[0], within=key[1], kind=key[2], value=key[3], change=change)
            for key, change in sorted(sums.items())
            if change
        ],
        AT_ONCE,
    )


def counted(row: Any, held: Facets, names: Iterable[Any]) -> Counter[tuple[str, str, str, str]]:
    """Return what a skill with the tags and agents ``held`` adds by its capabilities to each count that there is now."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    if row.visibility != "visible" or not row.latest_version:
        return counts
    publisher, verdict = row.publisher_handle, row.verdict
    columns = (("publisher", publisher), ("verdict", verdict), ("license", row.license))
    beside = [*(one for one in columns if one[1]), *held]
    for name in dict.fromkeys(str(one)[:64] for one in names):
        lists = {("", "capability", name)}
        lists |= {(f"{kind}:{value}", "capability", name) for kind, value in beside}
        lists |= {(f"capability:{name}", kind, value) for kind, value in beside}
        if publisher and verdict:
            lists.add((f"publisher:{publisher}&verdict:{verdict}", "capability", name))
            lists.add((f"publisher:{publisher}&capability:{name}", "verdict", verdict))
            lists.add((f"verdict:{verdict}&capability:{name}", "publisher", publisher))
        counts.update({(row.namespace, *one): 1 for one in lists})
    return counts


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("marketplace", "0037_counts_of_pairs"),
    ]

    operations = [
        migrations.RunPython(renew, migrations.RunPython.noop, elidable=True),
    ]
