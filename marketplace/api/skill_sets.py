"""Collections for programs: the list, and one with its skills, what they touch together, and how it installs."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.urls import reverse

from marketplace.addresses import archive_href, collection_href, public_base, skill_href
from marketplace.api.bounds import COLLECTIONS_LIMIT, LONGEST_CURSOR
from marketplace.api.http import SAFE, ApiCall, api_view, json_response, parameter, requested_limit, takes_only
from marketplace.api.lookup import named_collection
from marketplace.api.trust import milliseconds, said_of
from marketplace.install_lines.collection import lines_of_collection
from marketplace.judgement import verdict_of
from marketplace.models import Collection
from marketplace.pages.skill import Found, asked_for
from marketplace.pictures.reach import reach_together
from marketplace.skill_sets.reading import Member, collection_page, read_set, summaries
from vskill.visitors.reads import list_reads


@api_view(*SAFE, reads=list_reads)
def collections(call: ApiCall) -> HttpResponse:
    """List the collections by their names: ``items`` and ``nextCursor``, which is null on the last page."""
    takes_only(call, "limit", "cursor")
    cursor, limit = parameter(call, "cursor", longest=LONGEST_CURSOR), requested_limit(call, *COLLECTIONS_LIMIT)
    found, following = collection_page(call.env, cursor, limit)
    base = public_base(call.request, call.env)
    items = [{**_shape(one.collection, base), "skillCount": one.offered} for one in summaries(call.env, found)]
    return json_response({"items": items, "nextCursor": following})


@api_view(*SAFE, reads=list_reads)
def collection(call: ApiCall) -> HttpResponse:
    """Describe one collection; a skill that is withheld or withdrawn is counted and not named.

    ``capabilities`` is null where they are not known. With ``leftUnread`` there may be more: not all of it was read.
    """
    takes_only(call)
    found = read_set(call.env, named_collection(call))
    base = public_base(call.request, call.env)
    asked = [asked_for(Found(one.skill, one.version)) for one in found.members]
    touched = {one.name: None if one.seen is None else bool(one.seen) for one in reach_together(asked)}
    return json_response(
        {
            **_shape(found.collection, base),
            "skillCount": len(found.members),
            "skills": [
                {**_skill(one, base), "capabilities": list(can.names) if can.known else None, "leftUnread": can.unread}
                for one, can in zip(found.members, asked, strict=True)
            ],
            "withdrawn": found.withdrawn,
            "touches": touched,
            "install": [
                {"client": one.key, "command": one.command} for one in lines_of_collection(call.env, found, base)
            ],
            "index": base + reverse("marketplace:well-known-collection", args=[found.collection.slug]),
        }
    )


def _shape(collection: Collection, base: str) -> dict[str, Any]:
    return {
        "slug": collection.slug,
        "title": collection.title,
        "purpose": collection.purpose,
        "page": base + collection_href(collection.slug),
        "createdAt": milliseconds(collection.created_at),
        "updatedAt": milliseconds(collection.changed_at),
    }


def _skill(one: Member, base: str) -> dict[str, Any]:
    said = said_of(one.version)
    return {
        "slug": one.skill.slug,
        "displayName": one.skill.display_name or one.skill.name,
        "description": one.version.description,
        "note": one.note or None,
        "version": one.version.version,
        "pinned": one.pinned,
        "verdict": verdict_of(one.version),
        "verdictWarning": said.warning or None,
        "isSuspicious": said.suspicious,
        "installedAsOne": not one.suspicious,
        "page": base + skill_href(one.skill.slug),
        "archive": {
            "url": base + archive_href(one.skill.slug, one.version.version, "zip"),
            "sha256": one.version.zip_sha256,
            "size": one.version.zip_size,
        },
    }
