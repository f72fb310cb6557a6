"""Which skills are offered together, as one repository or one list of plugins."""

from __future__ import annotations

from typing import Final

from marketplace.api.http import ApiCall, ApiError
from marketplace.api.lookup import named_collection, no_publisher, with_latest_versions
from marketplace.api.trust import said_of
from marketplace.catalog import SkillFilters, list_skills
from marketplace.git.repositories import Plugin
from marketplace.models import Collection
from marketplace.skill_sets.reading import NOTHING_INSTALLED, read_set
from marketplace.skills.git_versions import MOST_SKILLS
from vskill.environments import WorkerEnv

NOTHING_OFFERED: Final = "Nothing of this publisher is offered through git at the moment."


def publisher_plugins(env: WorkerEnv, handle: str) -> list[Plugin]:
    """Return the newest skills of a publisher, without those that have findings; raise ``ApiError`` for nobody."""
    found = _listed(env, SkillFilters(publisher=handle), "newest")
    if not found:
        raise no_publisher(env, handle)
    return _unsuspicious(found)


def popular_plugins(env: WorkerEnv) -> list[Plugin]:
    """Return the skills of the registry that were downloaded most, without those that have findings."""
    return _unsuspicious(_listed(env, SkillFilters(), "downloads"))


def collection_plugins(call: ApiCall) -> tuple[Collection, list[Plugin]]:
    """Return the collection that the path names, and what it installs as one; raise ``ApiError`` for nothing."""
    collection = named_collection(call)
    installed = read_set(call.env, collection).installed
    if not installed:
        raise ApiError(410, NOTHING_INSTALLED)
    return collection, [Plugin(one.skill.slug, one.version, one.skill.publisher_handle) for one in installed]


def _listed(env: WorkerEnv, filters: SkillFilters, sort: str) -> list[Plugin]:
    page = list_skills(env, filters, sort=sort, limit=MOST_SKILLS)
    return [
        Plugin(one.skill.slug, one.latest, one.skill.publisher_handle)
        for one in with_latest_versions(env, page.skills)
        if one.latest is not None
    ]


def _unsuspicious(offered: list[Plugin]) -> list[Plugin]:
    return [one for one in offered if not said_of(one.version).suspicious]
