"""The skills with the same or similar text as one, for programs."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from marketplace.addresses import public_base, skill_href
from marketplace.api.http import SAFE, ApiCall, api_view, json_response
from marketplace.api.lookup import named_skill, requested_version
from marketplace.api.trust import said_of
from marketplace.judgement import verdict_of
from marketplace.likeness.neighbours import Neighbour, neighbours, origin
from marketplace.skills.visibility import versions_of_shown
from vskill.kv.clock import isoformat


@api_view(*SAFE)
def alike(call: ApiCall) -> HttpResponse:
    """Return the few listed skills whose text is like that of a version: copies first, then by the share in common.

    ``origin`` is the one that it is a copy of (``copyOf``) or derived from (``derivedFrom``), which was published
    earlier; null where there is none. ``share`` is from 0 to 1, and 1 for nothing but the same text.
    """
    skill = named_skill(call)
    version = requested_version(call, skill)
    near = neighbours(call.env, version, versions_of_shown)
    source, base = origin(version, near), public_base(call.request, call.env)
    return json_response(
        {
            "slug": skill.slug,
            "version": version.version,
            "origin": None
            if source is None
            else {"relation": "copyOf" if source.copy else "derivedFrom", **_shape(source, base)},
            "items": [_shape(one, base) for one in near],
        }
    )


def _shape(one: Neighbour, base: str) -> dict[str, Any]:
    skill, said = one.version.skill, said_of(one.version)
    return {
        "slug": skill.slug,
        "displayName": skill.display_name or skill.name,
        "ownerHandle": skill.publisher_handle,
        "version": one.version.version,
        # Rounded down, as on the page.
        "share": int(one.share * 100) / 100,
        "sameText": one.copy,
        "publishedEarlier": one.earlier,
        "firstPublishedAt": isoformat(skill.published_at) if skill.published_at else None,
        "verdict": verdict_of(one.version),
        "verdictWarning": said.warning or None,
        "page": base + skill_href(skill.slug),
    }
