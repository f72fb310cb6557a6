"""The addresses of feeds: new, updated and withdrawn skills, of all, of one publisher, or of a search."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from django.http import HttpResponseBase
from django.urls import reverse

from marketplace.addresses import public_base, publisher_href
from marketplace.api.http import SAFE, ApiCall, api_view, parameter, tagged_response, takes_only
from marketplace.api.lookup import no_publisher
from marketplace.catalog import SkillFilters, list_skills
from marketplace.feeds.atom import About, feed_of_skills, feed_of_withdrawals
from marketplace.search.text import MAX_QUERY_TERMS
from marketplace.skills.handles import present_handle
from marketplace.skills.recently_withdrawn import recently_withdrawn
from vskill.visitors.reads import list_reads

MOST_ENTRIES: Final = 50
CONTENT_TYPE: Final = "application/atom+xml; charset=utf-8"
FILTERS: Final = ("q", "verdict", "capability", "publisher", "agent", "license", "tag")
LONGEST: Final = 200
_SORTS: Final = {"new": "newest", "updated": "updated"}
KINDS: Final = (*_SORTS, "withdrawn")
_TITLES: Final = {"new": "New skills", "updated": "Updated skills", "withdrawn": "Withdrawn skills and versions"}


@api_view(*SAFE, reads=list_reads)
def feed(call: ApiCall) -> HttpResponseBase:
    """Return the feed ``new``, ``updated`` or ``withdrawn``; the filters of the list narrow down the first two."""
    kind = call.path_parameters["kind"]
    base = public_base(call.request, call.env)
    own = reverse(f"marketplace:feed-{kind}")
    if kind == "withdrawn":
        takes_only(call)
        about = About(_TITLES[kind], "What this registry no longer offers, and why.", base, own, "/skills")
        return tagged_response(
            call, feed_of_withdrawals(about, recently_withdrawn(call.env, MOST_ENTRIES)), CONTENT_TYPE
        )
    takes_only(call, *FILTERS)
    given = {name: value for name in FILTERS if (value := parameter(call, name, longest=LONGEST).strip())}
    filters = SkillFilters(query=given.get("q", ""), **{name: given.get(name, "") for name in FILTERS[1:]})
    query = f"?{urlencode(given)}" if given else ""
    title = _TITLES[kind] + "".join(f" · {value}" for value in given.values())
    page = list_skills(call.env, filters, sort=_SORTS[kind], limit=MOST_ENTRIES, strict=True)
    lists = "What this registry lists, each after its checks."
    if page.left_out:
        lists += f" Not searched for, because a search has at most {MAX_QUERY_TERMS} words: {' '.join(page.left_out)}."
    about = About(title, lists, base, own + query, f"/skills{query}")
    return tagged_response(call, feed_of_skills(about, page.skills, by_change=kind == "updated"), CONTENT_TYPE)


@api_view(*SAFE, reads=list_reads)
def publisher_feed(call: ApiCall) -> HttpResponseBase:
    """Return the feed of what one publisher has published or updated."""
    takes_only(call)
    handle = present_handle(call.env, call.path_parameters["handle"])
    page = list_skills(call.env, SkillFilters(publisher=handle), sort="updated", limit=MOST_ENTRIES)
    if not page.skills:
        raise no_publisher(call.env, handle)
    own = reverse("marketplace:publisher-feed", args=[handle])
    base = public_base(call.request, call.env)
    about = About(f"Skills of {handle}", "What this publisher has here.", base, own, publisher_href(handle))
    return tagged_response(call, feed_of_skills(about, page.skills, by_change=True), CONTENT_TYPE)
