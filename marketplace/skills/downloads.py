"""Count downloads: a row for each version and day, for each skill the total and the count of the last days, and each
day's total, in which those of skills are that everybody sees. A client counts once a day for a version.

All of them are written in one transaction: the first three are incremented in the database, and the day's total, on
which all downloads would wait, is one of the counts that are added up later. A day that leaves the last days is taken
out by ``recount_recent``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, timedelta
from typing import Final

from django.db import IntegrityError, connections, transaction
from django.db.models import BigIntegerField, Case, F, Q, Sum, Value, When
from django.utils.crypto import salted_hmac

from marketplace.models import SkillEntry
from marketplace.models.derived import CountedClient, DownloadDay
from marketplace.records import read_audience
from marketplace.skills.counts import count_download_of_day
from vskill.accounts.audiences import PUBLIC
from vskill.environments import WorkerEnv
from vskill.kv.clock import database_now

RECENT_DAYS: Final = 7
_AT_ONCE: Final = 500


def count_download_sync(env: WorkerEnv, skill_id: int, version: str, client: str = "") -> bool:
    """Count one download of a version for today (UTC, by the database's clock), for its skill, and for the registry.

    Return whether it was counted: whom ``client`` names counts once a day for a version, and nobody of that name, an
    empty one, each time.
    """
    today = database_now(env.database).date()
    days = DownloadDay.objects.using(env.database).filter(skill_id=skill_id, version=version, day=today)
    skill = SkillEntry.objects.using(env.database).filter(pk=skill_id)
    with transaction.atomic(using=env.database):
        if client and not _is_first(env, today, f"{skill_id} {version} {client}"):
            return False
        skill.update(downloads=F("downloads") + 1, recent_downloads=F("recent_downloads") + 1)
        # Read behind the change, under the lock that whoever changes the audience waits for.
        if read_audience(skill.values_list("visibility", flat=True).first() or "") == PUBLIC:
            count_download_of_day(env, today)
        if days.update(count=F("count") + 1):
            return True
        try:
            with transaction.atomic(using=env.database):
                DownloadDay.objects.using(env.database).create(
                    namespace=env.name, skill_id=skill_id, version=version, day=today, count=1
                )
        except IntegrityError:
            # Another process counted the first download of the day between our update and our insert.
            days.update(count=F("count") + 1)
    return True


def _is_first(env: WorkerEnv, today: date, told: str) -> bool:
    """Note that a client downloads a version today, and return whether it is for the first time."""
    # Keyed, so that nobody who reads the table can try addresses.
    digest = salted_hmac("marketplace.downloads", f"{today} {env.name} {told}", algorithm="sha256").hexdigest()
    table = CountedClient._meta.db_table
    with connections[env.database].cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{table}" (digest, day) VALUES (%s, %s) ON CONFLICT DO NOTHING',  # noqa: S608 - of our own model
            [digest, today],
        )
        return bool(cursor.rowcount)


def forget_clients(env: WorkerEnv) -> int:
    """Delete what days before yesterday told of clients, and return how many rows that was."""
    yesterday = database_now(env.database).date() - timedelta(days=1)
    deleted, _of_models = CountedClient.objects.using(env.database).filter(day__lt=yesterday).delete()
    return deleted


def recount_recent(env: WorkerEnv) -> int:
    """Set ``recent_downloads`` of every skill to its downloads of ``RECENT_DAYS`` days; return how many changed.

    Each skill is right at the moment of its own transaction. A download that is counted meanwhile is not lost.
    """
    first = _first_day(env)
    skills = SkillEntry.objects.using(env.database).filter(namespace=env.name)
    shown = dict(skills.filter(recent_downloads__gt=0).values_list("pk", "recent_downloads"))
    counted = _sums(env, first, Q(namespace=env.name))
    wrong = sorted(pk for pk in shown.keys() | counted.keys() if shown.get(pk, 0) != counted.get(pk, 0))
    return sum(_correct(env, first, wrong[start : start + _AT_ONCE]) for start in range(0, len(wrong), _AT_ONCE))


def _first_day(env: WorkerEnv) -> date:
    return database_now(env.database).date() - timedelta(days=RECENT_DAYS - 1)


def _sums(env: WorkerEnv, first: date, which: Q) -> Mapping[int, int]:
    days = DownloadDay.objects.using(env.database).filter(which, day__gte=first)
    return dict(days.order_by().values_list("skill_id").annotate(Sum("count")))


def _correct(env: WorkerEnv, first: date, numbers: Collection[int]) -> int:
    with transaction.atomic(using=env.database):
        # Whoever counts a download takes the row of the skill first, so the days of these stay as they are read.
        rows = SkillEntry.objects.using(env.database).select_for_update().filter(pk__in=numbers)
        skills = list(rows.order_by("pk").only("pk", "recent_downloads"))
        # Without the namespace, whose index of days would lead SQLite past the days of every skill.
        counted = _sums(env, first, Q(skill_id__in=numbers))
        wrong = {one.pk for one in skills if one.recent_downloads != counted.get(one.pk, 0)}
        right = [When(pk=pk, then=Value(counted[pk])) for pk in wrong & counted.keys()]
        changes = Case(*right, default=Value(0), output_field=BigIntegerField())
        return rows.filter(pk__in=wrong).update(recent_downloads=changes) if wrong else 0
