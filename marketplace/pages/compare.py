"""Skills side by side: what the page of a comparison shows of up to four."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from marketplace.addresses import publisher_href
from marketplace.coverage import stored_coverage
from marketplace.errors import InvalidListing
from marketplace.pages import skill as skill_page
from marketplace.pages.chosen import MOST, compare_href, list_href, read_chosen
from marketplace.pages.decide import first_publication, reach
from marketplace.pages.signing import signing_in_short
from marketplace.skills.near_names import near_slugs
from marketplace.skills.slugs import base_slug
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible


def compare_context(env: WorkerEnv, asked: list[str]) -> dict[str, Any]:
    """Return the context of the comparison of the skills that have or had these slugs.

    A slug that nothing has is among ``absent``, with names that are near and the comparison that has these in its
    place. ``differs`` says of what is a matter of kind whether the columns differ in it. Raises ``InvalidListing`` for
    no slug and for what ``read_chosen`` refuses.
    """
    slugs = read_chosen(asked)
    if not slugs:
        raise InvalidListing(
            "Nothing to compare was named. Tick one to four skills in a list, or name them, as in "
            "/compare?skill=pdf-tools&skill=pdf-forms."
        )
    found: dict[str, skill_page.Found] = {}
    absent: list[dict[str, Any]] = []
    for slug in slugs:
        # What was typed may be a name as people write it.
        one = skill_page.find(env, slug) or skill_page.find(env, base_slug(slug))
        if one is not None:
            found.setdefault(one.skill.slug, one)
            continue
        why = skill_page.why_absent(env, slug)
        absent.append({"name": visible(slug, 80), "why": why, "near": () if why else near_slugs(env, slug)})
    for missing in absent:
        missing["near"] = [(name, compare_href(*dict.fromkeys([*found, name]))) for name in missing["near"]]
    columns = [_column(env, one, list(found)) for one in found.values()]
    differs = {name: len({kind(one) for one in columns}) > 1 for name, kind in _KINDS.items()}
    reach_rows = [_reach_row(cells) for cells in zip(*(one["reach"] for one in columns), strict=True)]
    return {
        "columns": columns,
        "slugs": list(found),
        "absent": absent,
        "room": len(found) < MOST,
        "list_href": list_href(*found),
        "most": MOST,
        "differs": differs,
        "reach_rows": reach_rows,
        "different": [
            *(_ROWS[name] for name, differ in differs.items() if differ),
            *(row["name"] for row in reach_rows if row["differs"]),
        ],
    }


def _reach_row(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    differs = len({(cell["known"], *cell["seen"]) for cell in cells}) > 1
    return {"name": cells[0]["name"], "cells": cells, "differs": differs}


# What tells two columns apart in the rows that are a matter of kind; two numbers and two dates always differ.
_KINDS: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "verdict": lambda one: (one["version"]["verdict"], bool(one["version"]["flag_reason"])),
    "read": lambda one: one["read"],
    "publisher": lambda one: one["skill"]["owner"],
    "signed": lambda one: one["signing"]["state"],
    "licence": lambda one: one["version"]["license"],
    "works_with": lambda one: one["version"]["compatibility"],
}
_ROWS: Final = {
    "verdict": "Verdict",
    "read": "Read by the checks",
    "publisher": "Publisher",
    "signed": "Signed",
    "licence": "Licence",
    "works_with": "Works with",
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
        "signing": signing_in_short(env, found),
        "read": stored_coverage(found.version.engines, found.version.findings).sentence,
        "reach": reach(found)["rows"],
        "without_href": compare_href(*others) if others else "",
    }
