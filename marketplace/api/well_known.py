"""Indexes for discovery by address (agent-skills, version 0.2.0): one below each skill, one below each publisher.

The index at the root stays empty on purpose. A client downloads every skill of an index that it finds, and one at the
root would stand in the way of the addresses of single archives.
"""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse
from django.urls import reverse

from marketplace.api.http import SAFE, Asked, Refused, api_view, json_answer
from marketplace.api.lookup import Offered, visible_skill, with_latest_versions
from marketplace.catalog import SkillFilters, list_skills

_SCHEMA: Final = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
# A client downloads them all.
_MOST_OF_A_PUBLISHER: Final = 100
_LONGEST_DESCRIPTION: Final = 1024


@api_view(*SAFE)
def root_index(_asked: Asked) -> HttpResponse:
    """Return an index without skills."""
    return _index([])


@api_view(*SAFE)
def skill_index(asked: Asked) -> HttpResponse:
    """Return the index of one skill, so that the address of its page can be installed."""
    return _index(
        with_latest_versions(
            asked.env, [visible_skill(asked.env, asked.arguments["slug"], owner=asked.arguments.get("owner", ""))]
        )
    )


@api_view(*SAFE)
def publisher_index(asked: Asked) -> HttpResponse:
    """Return the index of a publisher's skills, the newest ones where there are very many."""
    filters = SkillFilters(publisher=asked.arguments["owner"].removeprefix("@").lower())
    page = list_skills(asked.env, filters, sort="newest", limit=_MOST_OF_A_PUBLISHER)
    if not page.skills:
        raise Refused(404, "There is no publisher of that name.")
    return _index(with_latest_versions(asked.env, page.skills))


def _index(skills: list[Offered]) -> HttpResponse:
    entries = [entry for offered in skills if (entry := _entry(offered)) is not None]
    if skills and not entries:
        raise Refused(404, "This skill has no version that is offered.")
    return json_answer({"$schema": _SCHEMA, "skills": entries}, max_age=60)


def _entry(offered: Offered) -> dict[str, Any] | None:
    skill, latest = offered.skill, offered.latest
    if latest is None:
        return None
    return {
        "name": skill.slug,
        "type": "archive",
        "description": skill.description[:_LONGEST_DESCRIPTION] or skill.slug,
        # The exact version and not the latest: the digest beside it must be of the same bytes a moment later.
        "url": reverse("marketplace:archive", args=[skill.slug, f"{latest.version}.tar.gz"]),
        "digest": f"sha256:{latest.tar_sha256}",
    }
