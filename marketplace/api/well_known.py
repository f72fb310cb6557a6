"""Indexes for discovery by URL (agent-skills 0.2.0): one below each skill, each publisher and each collection.

The index at the root stays empty on purpose. A client downloads every skill of an index that it finds, and an index at
the root would take precedence over the URLs of single archives.
"""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse

from marketplace.addresses import archive_href
from marketplace.api.http import SAFE, ApiCall, ApiError, api_view, json_response
from marketplace.api.lookup import (
    SkillWithLatest,
    exact_version,
    named_collection,
    no_publisher,
    visible_skill,
    with_latest_versions,
)
from marketplace.api.trust import said_of
from marketplace.catalog import SkillFilters, list_skills
from marketplace.skill_sets.reading import NOTHING_INSTALLED, read_set
from marketplace.skills.handles import present_handle
from marketplace.skills.slugs import is_slug
from marketplace.skills.withdrawal import nothing_offered
from vskill.visitors.reads import list_reads

_SCHEMA: Final = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
# A client downloads all of them.
_MOST_OF_A_PUBLISHER: Final = 100
_LONGEST_DESCRIPTION: Final = 1024


@api_view(*SAFE)
def root_index(_call: ApiCall) -> HttpResponse:
    """Return an index without skills."""
    return _index([])


@api_view(*SAFE)
def skill_index(call: ApiCall) -> HttpResponse:
    """Return the index of one skill, so that clients can install it by the URL of its page, or by that of a version.

    Under a former slug the skill is called by that: a client updates what it installed by the name in the index, and
    takes a skill that is called otherwise for another one.
    """
    names = call.path_parameters
    skill = visible_skill(call.env, names["slug"], owner=names.get("owner", ""))
    if "version" in names:
        offered = [SkillWithLatest(skill, exact_version(call.env, skill, names["version"]))]
    else:
        offered = with_latest_versions(call.env, [skill])
    if offered[0].latest is None:
        raise ApiError(410, nothing_offered(call.env, skill))
    called = names["slug"].lower()
    return _index(offered, called=called if is_slug(called) else "")


@api_view(*SAFE, reads=list_reads)
def publisher_index(call: ApiCall) -> HttpResponse:
    """Return the index of a publisher's newest skills, at most ``_MOST_OF_A_PUBLISHER``.

    Suspicious ones are left out: a client that is given this address installs all of them without a question. Each has
    an index of its own, whose description warns.
    """
    handle = present_handle(call.env, call.path_parameters["owner"])
    filters = SkillFilters(publisher=handle)
    page = list_skills(call.env, filters, sort="newest", limit=_MOST_OF_A_PUBLISHER)
    if not page.skills:
        raise no_publisher(call.env, handle)
    offered = with_latest_versions(call.env, page.skills)
    return _index([one for one in offered if one.latest is None or not said_of(one.latest).suspicious])


@api_view(*SAFE, reads=list_reads)
def collection_index(call: ApiCall) -> HttpResponse:
    """Return the index of what a collection installs as one: pinned versions, and the latest ones of the others.

    Suspicious ones are left out, as from the index of a publisher.
    """
    found = read_set(call.env, named_collection(call))
    if not found.installed:
        raise ApiError(410, NOTHING_INSTALLED)
    return _index([SkillWithLatest(one.skill, one.version) for one in found.installed])


def _index(skills: list[SkillWithLatest], *, called: str = "") -> HttpResponse:
    several = len(skills) > 1
    entries = [entry for offered in skills if (entry := _entry(offered, called, listed=several)) is not None]
    return json_response({"$schema": _SCHEMA, "skills": entries}, max_age=60)


def _entry(offered: SkillWithLatest, called: str, *, listed: bool) -> dict[str, Any] | None:
    skill, latest = offered.skill, offered.latest
    if latest is None:
        return None
    said = said_of(latest)
    description = " ".join(part for part in (said.warning, latest.description.strip()) if part)
    return {
        "name": called or skill.slug,
        "type": "archive",
        "description": description[:_LONGEST_DESCRIPTION] or skill.slug,
        # The exact version, because the digest must still match after the next publication.
        "url": archive_href(skill.slug, latest.version, "tar.gz", listed=listed),
        "digest": f"sha256:{latest.tar_sha256}",
    }
