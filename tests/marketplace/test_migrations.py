"""Migrations of data: what an earlier release stored is read by this one."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import pytest
from django.apps import apps
from django.db import connections

from marketplace.models import SkillEntry, SkillVersion
from tests.marketplace.factories import publish_example
from vskill.environments import WorkerEnv

pytestmark = pytest.mark.django_db

MIGRATION: Final[Any] = import_module("marketplace.migrations.0004_unscanned_versions")
FORMAT: Final = {"name": "structure", "version": "1", "status": "complete"}
ENGINE: Final = {"name": "skilltotal", "version": "1", "status": "complete"}


def test_a_version_that_no_engine_read_becomes_unscanned_with_its_entry(env: WorkerEnv) -> None:
    publish_example(env, name="unread", engines=(FORMAT,))
    publish_example(env, name="read", engines=(FORMAT, ENGINE))
    publish_example(env, name="unknown", engines=(), verdict="")
    publish_example(env, name="read-later", engines=(FORMAT,), verdict="notes")
    publish_example(env, name="read-later", engines=(FORMAT, ENGINE), body="Second.")
    before = {entry.slug: entry.version for entry in SkillEntry.objects.all()}
    for _twice in range(2):
        MIGRATION.mark_unscanned(apps, connections[env.database].schema_editor())

    entries = {entry.slug: entry for entry in SkillEntry.objects.all()}
    verdicts = {slug: (entry.verdict, entry.record.verdict) for slug, entry in entries.items()}
    assert verdicts == {
        "unread": ("unscanned", "unscanned"),
        "read": ("clear", "clear"),
        "unknown": ("", ""),
        "read-later": ("clear", "clear"),
    }
    assert {slug for slug, entry in entries.items() if entry.version != before[slug]} == {"unread"}
    stored = {f"{one.name} {one.version}": one.verdict for one in SkillVersion.objects.all()}
    assert stored["unread 0.0.1"] == stored["read-later 0.0.1"] == "unscanned"
    assert stored["read-later 0.0.2"] == stored["read 0.0.1"] == "clear"
