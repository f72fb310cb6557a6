"""Template contexts of the home page, the list and the pages of publishers, read on a database thread."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString

from marketplace.addresses import collection_href, publisher_href, skill_href
from marketplace.catalog import FacetValue, HowMany, SkillFilters, SkillPage, fetchable_versions, figures, list_skills
from marketplace.models import SkillEntry, SkillVersion
from marketplace.ownership.shown import owner_of
from marketplace.pages.chosen import chosen_context, tick
from marketplace.pages.list_capabilities import capabilities_of, not_read_whole
from marketplace.pages.list_query import FACETS, ListQuery
from marketplace.pages.wording import capability_words, published_words
from marketplace.pictures.weeks import weekly_activity, weekly_publications
from marketplace.search.documents import MOST_BODY_WORDS
from marketplace.search.text import MAX_QUERY_TERMS
from marketplace.skill_sets.reading import newest_collections
from marketplace.skills.downloads import RECENT_DAYS
from marketplace.skills.handles import short_handle
from vskill.environments import WorkerEnv
from vskill.hidden_characters import visible

PAGE_SIZE: Final = 24
NEWEST: Final = 6
TRENDING: Final = 4
NEWEST_COLLECTIONS: Final = 3
# What a card and a row of the table show, as columns of a skill.
_SHOWN: Final = (
    "slug",
    "name",
    "display_name",
    "publisher_handle",
    "description",
    "latest_version",
    "verdict",
    "flag_reason",
    "changed_at",
    "recent_downloads",
)
_SHOWN_IN_TABLE: Final = (*_SHOWN, "value")
# Of facets whose values authors choose freely; others can be typed.
_MOST_VALUES: Final = {"tag": 10, "license": 6, "publisher": 10}


def card(row: SkillEntry, *, in_table: bool = False, unread: bool = False) -> dict[str, Any]:
    """Return what a list shows about one skill, and with ``in_table`` what only the table has.

    ``unread`` says that its latest version was not read whole.
    """
    shown: dict[str, Any] = {
        "slug": row.slug,
        "href": skill_href(row.slug),
        "name": row.display_name or row.name,
        "owner": row.publisher_handle,
        "description": row.description,
        "version": row.latest_version,
        "verdict": row.verdict,
        "flag_reason": row.flag_reason,
        "updated_at": row.changed_at,
        "recent_downloads": row.recent_downloads,
    }
    if in_table:
        # Each reads the skill's value or makes another address.
        shown["publisher_href"] = publisher_href(row.publisher_handle)
        shown["capabilities"] = capabilities_of(row, unread=unread)
    return shown


def home_context(env: WorkerEnv) -> dict[str, Any]:
    """Return the context of the home page: the figures of the registry, its newest skills and those that are downloaded
    most in these days, and its activity by week.
    """
    versions = fetchable_versions(SkillVersion.objects.using(env.database).filter(namespace=env.name))
    return {
        "figures": {
            **vars(figures(env)),
            "last_published": versions.order_by("-pk").values_list("created_at", flat=True).first(),
            "as_of": timezone.now(),
        },
        "newest": [card(row) for row in list_skills(env, limit=NEWEST, columns=_SHOWN).skills],
        # What nobody downloads is no trend.
        "trending": [
            card(row)
            for row in list_skills(env, sort="trending", limit=TRENDING, columns=_SHOWN).skills
            if row.recent_downloads
        ],
        "recent_days": RECENT_DAYS,
        "collections": [
            {"title": one.title, "href": collection_href(one.slug)}
            for one in newest_collections(env, NEWEST_COLLECTIONS)
        ],
        "activity": weekly_activity(env, timezone.now().date()),
    }


def list_context(env: WorkerEnv, query: ListQuery) -> dict[str, Any]:
    """Return the context of the list that ``query`` describes; raise ``InvalidListing`` for another list's cursor."""
    filters = SkillFilters(query=query.q, **query.filters)
    columns = _SHOWN_IN_TABLE if query.view == "table" else _SHOWN
    asked: dict[str, Any] = {"sort": query.order, "cursor": query.cursor or None, "facets": FACETS, "columns": columns}
    page = list_skills(env, filters, limit=PAGE_SIZE, count=True, strict=True, **asked)
    shown = _page_links(env, query, page)
    picking = query.view == "table" or bool(query.q) or bool(query.compare)
    for one in shown["cards"] if picking else ():
        one["tick"] = tick(query, one["slug"])
    return {
        "query": query.q,
        "query_shown": visible(query.q),
        "loosened": page.loosened,
        "left_out": visible(" ".join(page.left_out)),
        "most_words": MAX_QUERY_TERMS,
        "most_body_words": f"{MOST_BODY_WORDS:,}",
        "view": query.view,
        "picking": picking,
        **chosen_context(env, query, page.skills),
        "kept": query.kept(),
        "total": page.total,
        "as_of": timezone.now(),
        "facets": _facets(query.change(), tuple((name, tuple(values)) for name, values in page.facets.items())),
        "filters": [
            {"label": f"{FACETS[name]}: {_words(name, value)[0]}", "href": query.href(**{name: ""})}
            for name, value in query.filters.items()
        ],
        "near": [
            {
                "label": FACETS[name],
                "value": visible(query.filters[name]),
                "links": [{"label": visible(value), "href": query.href(**{name: value})} for value in values],
            }
            for name, values in page.near.items()
        ],
        "unfiltered_href": query.unfiltered(),
        "all_href": query.plain(),
        "sorts": query.sort_links(),
        "recent_days": RECENT_DAYS if query.order == "trending" else None,
        "views": query.view_links(),
        **shown,
    }


def publisher_context(env: WorkerEnv, handle: str, cursor: str) -> dict[str, Any] | None:
    """Return the context of one page of a publisher's skills, or ``None`` where there are none.

    ``cursor`` is empty for the first page. Raises ``InvalidListing`` for another list's cursor.
    """
    filters = SkillFilters(publisher=handle)
    asked: dict[str, Any] = {"sort": "updated", "columns": (*_SHOWN, "publisher")}
    page = list_skills(env, filters, limit=PAGE_SIZE, cursor=cursor or None, count=True, **asked)
    newest = list_skills(env, filters, limit=1, **asked).skills if cursor else page.skills
    if not newest:
        return None
    last = newest[0].changed_at
    # On the first page alone, which says whose page it is.
    activity = None if cursor else weekly_publications(env, handle, timezone.now().date())
    about = {
        "owner": handle,
        "short_handle": short_handle(handle),
        "claim": owner_of(env, newest[0].publisher) if newest[0].publisher else None,
        "total": page.total,
        "last_updated": last,
        "activity": activity,
    }
    return {**about, **_page_links(env, ListQuery(cursor=cursor), page)}


def _cards(env: WorkerEnv, view: str, rows: Sequence[SkillEntry]) -> list[dict[str, Any]]:
    if view != "table":
        return [card(row) for row in rows]
    unread = not_read_whole(env, rows)
    return [card(row, in_table=True, unread=row.pk in unread) for row in rows]


def _page_links(env: WorkerEnv, query: ListQuery, page: SkillPage) -> dict[str, Any]:
    return {
        "cards": _cards(env, query.view, page.skills),
        "next_href": query.href(cursor=page.next_cursor) if page.next_cursor else "",
        "first_href": query.href(cursor="") if query.cursor else "",
    }


@lru_cache(maxsize=256)
def _facets(query: ListQuery, counts: tuple[tuple[str, tuple[FacetValue, ...]], ...]) -> SafeString:
    """Draw the facets with their links; between two publications most lists have the same counts, so they are kept."""
    shown = [_facet(query, name, values) for name, values in counts]
    return render_to_string("marketplace/components/facets.html", {"facets": shown})


def _facet(query: ListQuery, name: str, counts: tuple[FacetValue, ...]) -> dict[str, Any]:
    chosen = query.filters.get(name, "")
    most = _MOST_VALUES.get(name, len(counts))
    known: dict[str, HowMany | None] = {
        one.value: None if one.number is None else HowMany(one.number, one.or_more) for one in counts[:most]
    }
    if chosen:
        # The chosen value is always an option, even if rare or gone, because that is how it is deselected.
        known.setdefault(chosen, None)
    options = []
    for value, found in known.items():
        words, icon = _words(name, value)
        href = query.href(**{name: "" if value == chosen else value})
        options.append({"label": words, "icon": icon, "found": found, "href": href, "active": value == chosen})
    return {
        "name": name,
        "label": FACETS[name],
        "options": options,
        "counted": all(one.number is not None for one in counts),
        # Where there are more than are named, others can be typed, and the next are offered for that.
        "has_more": len(counts) > most,
        "offered": [one.value for one in counts[most:] if visible(one.value) == one.value],
        "kept": query.kept(name),
    }


def _words(facet: str, value: str) -> tuple[str, str]:
    if facet == "verdict":
        return published_words(value).label, published_words(value).icon
    if facet == "capability":
        return visible(capability_words(value).label), capability_words(value).icon
    return visible(value), ""
