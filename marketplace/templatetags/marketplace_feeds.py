"""Template tags that lead from a page to its feeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django import template
from django.urls import reverse

from marketplace.feeds.views import FILTERS, LONGEST

register = template.Library()


@register.simple_tag(takes_context=True)
def feeds(context: Mapping[str, Any], handle: str = "") -> list[dict[str, str]]:
    """Return the feeds of a page as ``title`` and ``href``: of the publisher ``handle``, or of the list it shows."""
    if handle:
        own = reverse("marketplace:publisher-feed", args=[handle])
        return [{"title": "Updates of this publisher", "href": own}]
    given = getattr(context.get("request"), "GET", {})
    kept = {name: value for name in FILTERS if (value := str(given.get(name, "")).strip()[:LONGEST])}
    query = f"?{urlencode(kept)}" if kept else ""
    new, updated, withdrawn = (reverse(f"marketplace:feed-{kind}") for kind in ("new", "updated", "withdrawn"))
    found = [{"title": "New", "href": new + query}, {"title": "Updated", "href": updated + query}]
    return found if kept else [*found, {"title": "Withdrawn", "href": withdrawn}]
