"""Downloads and first publications by weeks, which begin on Monday (UTC): of a skill, a publisher, the registry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Final

from django.db.models import Sum

from marketplace.models import DownloadDay, SkillEntry
from marketplace.pictures.columns import Column, Picture, picture_of
from marketplace.skills.count_reads import activity, publications
from vskill.environments import WorkerEnv

WEEKS: Final = 26


def monday(day: date) -> date:
    """Return the Monday on or before a day."""
    return day - timedelta(days=day.weekday())


def by_weeks(days: Mapping[date, int], known_since: date, today: date, weeks: int = WEEKS) -> tuple[Column, ...]:
    """Return a column for each of the last ``weeks`` weeks; weeks that ended before ``known_since`` are not known."""
    sums = Counter[date]()
    for day, count in days.items():
        sums[monday(day)] += count
    last = monday(today)
    starts = [last - timedelta(weeks=back) for back in range(weeks - 1, -1, -1)]
    return tuple(
        Column(
            f"week from {start.day} {start:%b %Y}", sums[start] if start >= monday(known_since) else None, start == last
        )
        for start in starts
    )


def weekly_downloads(env: WorkerEnv, skill: SkillEntry, today: date) -> Picture | None:
    """Return the picture of a skill's downloads by week, or ``None`` where nothing was recorded.

    Before its publication there is no number. Where its total is more than its days have, the days before the first
    that was recorded are not known either.
    """
    rows = DownloadDay.objects.using(env.database).filter(skill_id=skill.pk).order_by().values_list("day")
    days: dict[date, int] = dict(rows.annotate(Sum("count")))
    since = skill.published_at.date() if skill.published_at else today
    if sum(days.values()) < skill.downloads:
        # Not one week then: nothing tells which of them the missing ones belong to.
        if not days:
            return None
        since = max(since, min(days))
    return picture_of(_title("Downloads", today), by_weeks(days, since, today), "downloads")


def weekly_activity(env: WorkerEnv, today: date) -> dict[str, Picture | None]:
    """Return the pictures of the registry: when the skills that are listed today were first published, and downloads.

    They are made of counts that are kept, so they cost the same however many skills there are.
    """
    first = monday(today) - timedelta(weeks=WEEKS - 1)
    found = activity(env, first)
    since = found.downloads_since
    downloads = None if since is None else by_weeks(found.downloads, since, today)
    return {
        "published": picture_of(
            _title("Skills first published", today), by_weeks(found.published, first, today), "skills"
        ),
        "downloads": picture_of(_title("Downloads", today), downloads, "downloads") if downloads else None,
    }


def weekly_publications(env: WorkerEnv, handle: str, today: date) -> Picture | None:
    """Return the picture of when the skills of a publisher that are listed today were first published, by week."""
    first = monday(today) - timedelta(weeks=WEEKS - 1)
    title = _title("Skills first published", today)
    return picture_of(title, by_weeks(publications(env, handle, first), first, today), "skills")


def _title(what: str, today: date) -> str:
    return f"{what} by week, {WEEKS} weeks to {today.day} {today:%b %Y}"
