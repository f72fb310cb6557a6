"""Lead from a skill to the lists of those that are made for the same agents, or have its tags or its licence."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from marketplace.errors import MalformedRecord
from marketplace.models import SkillEntry
from marketplace.pages.list_query import ListQuery
from marketplace.skills.agents import agents_of
from vskill.hidden_characters import visible


def like_links(row: SkillEntry) -> dict[str, Any]:
    """Return ``agents`` and ``tags``, lists of ``label`` and ``href``, and ``license_href``, empty for none."""
    try:
        record = row.record
    except (MalformedRecord, ValueError):
        # verify_store reports the value, and the page has no more of it to show.
        return {"agents": [], "tags": [], "license_href": ""}
    return {
        "agents": [{"label": one, "href": _href(agent=one)} for one in agents_of(record)],
        "tags": [{"label": visible(one), "href": _href(tag=one)} for one in record.tags],
        "license_href": _href(license=row.license) if row.license else "",
    }


def _href(**filters: str) -> str:
    return reverse("marketplace:skills") + ListQuery(**filters).href()
