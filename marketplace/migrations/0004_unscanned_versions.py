"""Say of versions that no engine has read that they were not scanned.

A trusted owner's skill was published with its format checked and nothing else, and stored as ``clear`` or ``notes``.
Its version and, where that is the latest, its entry get the verdict ``unscanned``.
"""

from __future__ import annotations

import json
from typing import Any

from django.db import migrations

from vskill.kv.codec import encode

# As they were when this was written.
PASSED = ("clear", "notes")
PRE_SCAN = "structure"
UNSCANNED = "unscanned"
SUMMARY = "Not scanned: its owner is trusted here. Only its format was checked."


def mark_unscanned(apps: Any, schema_editor: Any) -> None:
    """Write the verdict into versions and entries; a second run changes nothing."""
    alias = schema_editor.connection.alias
    versions = apps.get_model("marketplace", "SkillVersion")._base_manager.using(alias)
    entries = apps.get_model("marketplace", "SkillEntry")._base_manager.using(alias)
    columns = versions.filter(verdict__in=PASSED).order_by("pk").values_list("pk", "skill_id", "version", "engines")
    found = [
        (pk, skill_id, version)
        for pk, skill_id, version, engines in columns.iterator(chunk_size=2000)
        if engines and all(isinstance(one, dict) and one.get("name") == PRE_SCAN for one in engines)
    ]
    for pk, skill_id, version in found:
        versions.filter(pk=pk).update(verdict=UNSCANNED, verdict_summary=SUMMARY)
        for entry in entries.filter(pk=skill_id, latest_version=version):
            write(alias, entry)


def write(alias: str, entry: Any) -> None:
    """Write the verdict into the value of a skill's entry, and into its column."""
    try:
        value = json.loads(entry.value)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        # A value that cannot be read stays as it is; ``verify_store`` finds it.
        entry.value = encode({**value, "verdict": UNSCANNED, "verdictSummary": SUMMARY})
    entry.verdict = UNSCANNED
    entry.version += 1
    entry.save_base(using=alias, raw=True, force_update=True)


class Migration(migrations.Migration):
    dependencies = [
        ("marketplace", "0003_source_ref"),
    ]

    operations = [
        migrations.RunPython(mark_unscanned, migrations.RunPython.noop),
    ]
