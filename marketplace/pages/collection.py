"""What the pages of collections show: the list, and one with its skills and what they touch together."""

from __future__ import annotations

from typing import Any, Final

from django.urls import reverse

from marketplace.addresses import collection_href, publisher_href, skill_href
from marketplace.capabilities import Capabilities
from marketplace.install_lines.collection import lines_of_collection, set_needs_token
from marketplace.judgement import verdict_of, warning
from marketplace.models import Collection
from marketplace.pages.skill import Found, asked_for
from marketplace.pages.wording import capability_words, published_words
from marketplace.pictures.reach import draw_reach, reach_of, reach_together
from marketplace.skill_sets.reading import Member, SkillSet, collection_page, collections_of, read_set, summaries
from vskill.environments import WorkerEnv

PAGE_SIZE: Final = 50


def collections_context(env: WorkerEnv, cursor: str) -> dict[str, Any]:
    """Return the context of a page of the list of collections; ``cursor`` is empty for the first.

    Raises ``InvalidCursor`` for one that no page of this list gave.
    """
    found, following = collection_page(env, cursor, PAGE_SIZE)
    return {
        "collections": [
            {
                **link(one.collection),
                "purpose": one.collection.purpose,
                "offered": one.offered,
                "changed_at": one.collection.changed_at,
            }
            for one in summaries(env, found)
        ],
        "next_cursor": following,
        "is_first": not cursor,
    }


def collection_context(env: WorkerEnv, collection: Collection, base: str) -> dict[str, Any]:
    """Return the context of the page of one collection; ``base`` is the base URL of the registry."""
    found = read_set(env, collection)
    asked = [asked_for(Found(one.skill, one.version)) for one in found.members]
    return {
        "title": collection.title,
        "purpose": collection.purpose,
        "changed_at": collection.changed_at,
        "members": [_member(one, can) for one, can in zip(found.members, asked, strict=True)],
        "withdrawn": found.withdrawn,
        "left_out": [_named(one) for one in found.left_out],
        "installed": len(found.installed),
        "install": lines_of_collection(env, found, base),
        "install_token": set_needs_token(env, found),
        "reach": _reach(found, asked) if found.members else None,
        "api_href": reverse("marketplace:api-collection", args=[collection.slug]),
    }


def links_of(env: WorkerEnv, found: Found) -> list[dict[str, str]]:
    """Return a link to each collection that offers a skill."""
    return [link(one) for one in collections_of(env, found.skill)]


def link(collection: Collection) -> dict[str, str]:
    """Return the title and address of a collection."""
    return {"title": collection.title, "href": collection_href(collection.slug)}


def _member(one: Member, can: Capabilities) -> dict[str, Any]:
    verdict = verdict_of(one.version)
    # The best verdict is said by its badge; every other one says what to do.
    sentence = "" if verdict == "clear" else published_words(verdict).sentence
    return {
        **_named(one),
        "description": one.version.description,
        "note": one.note,
        "owner": one.skill.publisher_handle,
        "publisher_href": publisher_href(one.skill.publisher_handle),
        "version": one.version.version,
        "pinned": one.pinned,
        "verdict": verdict,
        "flag_reason": one.version.flag_reason,
        "sentence": warning(verdict, one.version.flag_reason) or sentence,
        "capabilities": can,
    }


def _named(one: Member) -> dict[str, str]:
    exact = Found(one.skill, one.version).exact
    return {"name": one.skill.display_name or one.skill.name, "href": skill_href(one.skill.slug) + exact}


def _reach(found: SkillSet, asked: list[Capabilities]) -> dict[str, Any]:
    together = reach_together(asked)
    each = [reach_of(one) for one in asked]
    rows = []
    for place, target in enumerate(together):
        by = [_named(one) for one, own in zip(found.members, each, strict=True) if own[place].seen]
        words = list(dict.fromkeys(capability_words(name).label for name in target.seen or ()))
        rows.append({"name": target.name, "known": target.seen is not None, "seen": words, "by": by})
    return {"svg": draw_reach(together, "The set"), "rows": rows}
