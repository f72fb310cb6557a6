"""The skills that are ticked in a list to be compared: how they are read, ticked and shown beside the list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse

from marketplace.catalog import find_skill_sync, is_visible
from marketplace.errors import InvalidListing
from marketplace.models import ALIAS_PREFIX, SKILL_PREFIX, SkillEntry
from marketplace.pages.list_query import LONGEST_CHOICE, ListQuery
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible
from vskill.many_keys import with_columns

MOST: Final = 4


def compare_href(*slugs: str) -> str:
    """Return the address of the page that compares these skills."""
    return f"{reverse('marketplace:compare')}?{urlencode([('skill', slug) for slug in slugs])}"


def list_href(*slugs: str) -> str:
    """Return the address of the list in which these skills are ticked, and others can be."""
    return reverse("marketplace:skills") + ListQuery(view="table", compare=slugs).href()


def read_chosen(given: Iterable[str]) -> tuple[str, ...]:
    """Return the slugs that an address names to be compared, each once.

    Raises ``InvalidListing`` for more than ``MOST`` and for one that is longer than any.
    """
    slugs = tuple(dict.fromkeys(text for one in given if (text := one.replace("\0", "").strip())))
    if len(slugs) > MOST:
        raise InvalidListing(f"{len(slugs)} skills were named. A comparison has at most {MOST}: leave some out.")
    longest = max(map(len, slugs), default=0)
    if longest > LONGEST_CHOICE:
        raise InvalidListing(f"The name of a skill has {longest} characters. It can have {LONGEST_CHOICE}.")
    return slugs


def tick(query: ListQuery, slug: str) -> dict[str, Any] | None:
    """Return whether a skill of a list is ticked, and the link that changes it; ``None`` where no more can be."""
    ticked = slug in query.compare
    if not ticked and len(query.compare) == MOST:
        return None
    return {"ticked": ticked, "href": query.ticking(slug), "id": f"tick-{slug}"}


def chosen_context(env: WorkerEnv, query: ListQuery, rows: Sequence[SkillEntry]) -> dict[str, Any]:
    """Return what a list shows of the skills that are ticked in it; ``rows`` are those of its page.

    Names of skills on other pages are read by one statement, and what a skill was called before is looked up. What is
    not listed is said to be absent.
    """
    known = {row.slug: row for row in rows}
    elsewhere = [slug for slug in query.compare if slug not in known]
    if elsewhere:
        keys = [prefix + slug for slug in elsewhere for prefix in (SKILL_PREFIX, ALIAS_PREFIX)]
        entries = SkillEntry.objects.using(env.database).filter(namespace=env.name, key__in=keys)
        read = with_columns(entries, ("key", "slug", "name", "display_name", "visibility", "latest_version"))
        known |= {row.slug: row for row in read if _is_listed(row)}
        former = [row.key.removeprefix(ALIAS_PREFIX) for row in read if row.key.startswith(ALIAS_PREFIX)]
        now = {slug: row for slug in former if slug not in known and (row := find_skill_sync(env, slug)) is not None}
        known |= {slug: row for slug, row in now.items() if _is_listed(row)}
    links = [{"slug": slug, "href": query.ticking(slug)} for slug in query.compare]
    found = [one for one in links if one["slug"] in known]
    return {
        "most_compared": MOST,
        "full": len(query.compare) == MOST,
        "chosen": [
            {"name": (row := known[one["slug"]]).display_name or row.name, "href": one["href"]} for one in found
        ],
        "not_listed": [
            {"name": visible(one["slug"], 80), "href": one["href"]} for one in links if one["slug"] not in known
        ],
        "compare_href": compare_href(*(one["slug"] for one in found)) if found else "",
    }


def _is_listed(skill: SkillEntry) -> bool:
    return is_visible(skill) and skill.latest_version != ""
