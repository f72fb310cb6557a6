"""What helps to decide on a skill: who publishes it since when, what it can touch, its downloads, what is alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.utils import timezone

from marketplace.addresses import skill_href
from marketplace.catalog import fetchable_versions, listed_skills
from marketplace.likeness.neighbours import Neighbour, neighbours, origin
from marketplace.models import SkillEntry, SkillVersion
from marketplace.pages.chosen import compare_href
from marketplace.pages.skill import Found, asked_for
from marketplace.pages.version_changes import changes_between, changes_href
from marketplace.pages.wording import capability_words
from marketplace.pictures.reach import draw_reach, reach_of
from marketplace.pictures.weeks import weekly_downloads
from marketplace.skills.visibility import versions_of_shown
from vskill.accounts.teams import words_for
from vskill.environments import WorkerEnv


def deciding(env: WorkerEnv, found: Found) -> dict[str, Any]:
    """Return the context of what helps to decide on a version; ``shown_to`` is empty where everybody sees it."""
    audience = found.skill.audience
    near = neighbours(env, found.version, versions_of_shown)
    alike, source = [_alike(found, one) for one in near], origin(found.version, near)
    return {
        "shown_to": words_for(env, audience) if audience else "",
        "publishes_since": first_publication(env, found.skill.publisher_handle),
        "downloads": weekly_downloads(env, found.skill, timezone.now().date()),
        "reach": reach(found),
        "alike": alike,
        "changes": changes(env, found),
        "origin": None if source is None else _alike(found, source),
        "compare_href": compare_href(found.skill.slug),
        "compare_all_href": compare_href(found.skill.slug, *(one["slug"] for one in alike[:3])) if alike else "",
    }


def changes(env: WorkerEnv, found: Found) -> dict[str, Any] | None:
    """Return what changed since the version before: what it can do and its files; ``None`` for a first version.

    ``known`` and ``unread`` are those of ``changes_between``. A version in quarantine is passed over.
    """
    rows = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=found.skill)
    earlier = fetchable_versions(rows).filter(ordinal__lt=found.version.ordinal).defer("skill_md")
    before = earlier.order_by("-ordinal").first()
    if before is None:
        return None
    return {
        "since": before.version,
        "since_href": f"{skill_href(found.skill.slug)}?{urlencode({'version': before.version})}",
        "lines_href": changes_href(found.skill.slug, before.version, found.version.version),
        **changes_between(before, found.version),
    }


def first_publication(env: WorkerEnv, handle: str) -> Any:
    """Return when a publisher first published a skill that is still listed, or ``None``."""
    skills = listed_skills(SkillEntry.objects.using(env.database).filter(namespace=env.name, publisher_handle=handle))
    return skills.order_by("published_at", "pk").values_list("published_at", flat=True).first() if handle else None


def reach(found: Found) -> dict[str, Any]:
    """Return the map of what a version can touch, as a drawing and as rows of a table."""
    targets = reach_of(asked_for(found))
    rows = [
        {
            "name": one.name,
            "state": one.state,
            "known": one.seen is not None,
            "seen": deeds_in_words(one.seen or ()),
        }
        for one in targets
    ]
    return {"svg": draw_reach(targets), "rows": rows}


def deeds_in_words(names: Sequence[str]) -> list[str]:
    """Return capabilities and deeds in the words of pages, each once."""
    return list(dict.fromkeys(capability_words(name).label for name in names))


def _alike(found: Found, one: Neighbour) -> dict[str, Any]:
    skill = one.version.skill
    return {
        "slug": skill.slug,
        "name": skill.display_name or skill.name,
        "href": skill_href(skill.slug),
        "owner": skill.publisher_handle,
        "published_at": skill.published_at,
        "verdict": one.version.verdict,
        "flag_reason": one.version.flag_reason,
        "downloads": skill.downloads,
        # Rounded down, so that 100 is said of nothing but the same text.
        "percent": int(one.share * 100),
        "copy": one.copy,
        "earlier": one.earlier,
        "compare_href": compare_href(found.skill.slug, skill.slug),
    }
