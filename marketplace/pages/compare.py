"""Skills side by side: what the page of a comparison shows of up to four."""

from __future__ import annotations

from typing import Any, Final

from marketplace.addresses import publisher_href, skill_href
from marketplace.errors import InvalidListing
from marketplace.pages import skill as skill_page
from marketplace.pages.decide import compare_href, first_publication, reach
from marketplace.skills.near_names import near_slugs
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible

MOST: Final = 4


def compare_context(env: WorkerEnv, asked: list[str]) -> dict[str, Any]:
    """Return the context of the comparison of the skills that have or had these slugs.

    A slug that nothing has is among ``absent``, with names that are near. Raises ``InvalidListing`` for no slug and for
    more than ``MOST``.
    """
    slugs = list(dict.fromkeys(slug.strip()[:200] for slug in asked if slug.strip()))
    if not slugs:
        raise InvalidListing(
            "Nothing to compare was named. Name one to four skills, as in /compare?skill=pdf-tools&skill=pdf-forms."
        )
    if len(slugs) > MOST:
        raise InvalidListing(f"{len(slugs)} skills were named. A comparison has at most {MOST}: leave some out.")
    found: dict[str, skill_page.Found] = {}
    absent = []
    for slug in slugs:
        one = skill_page.find(env, slug)
        if one is not None:
            found.setdefault(one.skill.slug, one)
            continue
        why = skill_page.why_absent(env, slug)
        near = () if why else near_slugs(env, slug)
        absent.append({"name": visible(slug, 80), "why": why, "near": [(name, skill_href(name)) for name in near]})
    columns = [_column(env, one, list(found)) for one in found.values()]
    return {
        "columns": columns,
        "slugs": list(found),
        "absent": absent,
        "room": len(found) < MOST,
        "most": MOST,
        "reach_rows": [
            {"name": cells[0]["name"], "cells": cells} for cells in zip(*(one["reach"] for one in columns), strict=True)
        ],
    }


def _column(env: WorkerEnv, found: skill_page.Found, slugs: list[str]) -> dict[str, Any]:
    shown = skill_page.head(found)
    others = [slug for slug in slugs if slug != found.skill.slug]
    return {
        **shown,
        "slug": found.skill.slug,
        "publisher_href": publisher_href(found.skill.publisher_handle),
        "first_published": found.skill.published_at,
        "since": first_publication(env, found.skill.publisher_handle),
        "recent": found.skill.recent_downloads,
        "files": len(found.version.manifest),
        "reach": reach(found)["rows"],
        "without_href": compare_href(*others) if others else "",
    }
