"""Count downloads: one row for each version and day, and a total for each skill, both incremented in the database."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.db.models import F

from marketplace.derived_models import DownloadDay
from marketplace.models import SkillEntry
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now


def count_download_sync(env: WorkerEnv, skill_id: int, version: str) -> None:
    """Count one download of a version for today (UTC, by the database's clock) and for the skill's total."""
    today = database_now(env.database).date()
    days = DownloadDay.objects.using(env.database).filter(skill_id=skill_id, version=version, day=today)
    with transaction.atomic(using=env.database):
        SkillEntry.objects.using(env.database).filter(pk=skill_id).update(downloads=F("downloads") + 1)
        if days.update(count=F("count") + 1):
            return
        try:
            with transaction.atomic(using=env.database):
                DownloadDay.objects.using(env.database).create(
                    namespace=env.name, skill_id=skill_id, version=version, day=today, count=1
                )
        except IntegrityError:
            # Another process counted the first download of the day between our update and our insert.
            days.update(count=F("count") + 1)
