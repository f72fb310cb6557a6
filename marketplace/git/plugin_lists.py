"""Marketplaces of Claude Code by URL: lists of plugins, each at one commit of the repository of its skill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpResponse, HttpResponseBase

from marketplace.addresses import plugin_list_name, public_base, repository_url, skill_href
from marketplace.api.http import SAFE, ApiCall, ApiError, api_view, json_response
from marketplace.api.lookup import exact_version, visible_skill
from marketplace.api.trust import said_of
from marketplace.git.catalogues import OWNER, described, plugin_folder
from marketplace.git.offers import collection_plugins, popular_plugins, publisher_plugins
from marketplace.git.repositories import Plugin, fitting, version_commit
from marketplace.skills.git_versions import MOST_SKILLS, has_tag
from marketplace.skills.handles import present_handle
from vskill.visitors.reads import list_reads

_LONGEST_DESCRIPTION: Final = 1024


@api_view(*SAFE, reads=list_reads)
def registry_plugins(call: ApiCall) -> HttpResponse:
    """Return the marketplace of the registry: the skills that were downloaded most, at most ``MOST_SKILLS``."""
    about = f"The {MOST_SKILLS} skills of this registry that are downloaded most. Every skill has a list of its own."
    return _list(call, "", about, popular_plugins(call.env))


@api_view(*SAFE, reads=list_reads)
def publisher_list(call: ApiCall) -> HttpResponse:
    """Return the marketplace of a publisher: its newest skills."""
    handle = present_handle(call.env, call.path_parameters["handle"])
    return _list(call, handle, f"The newest skills of {handle}.", publisher_plugins(call.env, handle))


@api_view(*SAFE, reads=list_reads)
def collection_list(call: ApiCall) -> HttpResponse:
    """Return the marketplace of a collection: what it installs as one."""
    collection, plugins = collection_plugins(call)
    return _list(call, collection.slug, collection.title, plugins)


@api_view(*SAFE)
def skill_list(call: ApiCall) -> HttpResponseBase:
    """Return the marketplace of one skill, in its latest version or in the one that the path names.

    Both are called the same, so that a client replaces the one by the other. The description warns of findings.
    """
    skill = visible_skill(call.env, call.path_parameters["slug"])
    version = exact_version(call.env, skill, call.path_parameters.get("version", ""))
    if not has_tag(call.env, skill, version):
        raise ApiError(409, "This version is not offered through git. Its archives are on its page.")
    return _list(call, skill.slug, f"The skill {skill.slug}.", [Plugin(skill.slug, version, skill.publisher_handle)])


def _list(call: ApiCall, part: str, about: str, plugins: Sequence[Plugin]) -> HttpResponse:
    base = public_base(call.request, call.env)
    taken = fitting(call.env, plugins)
    body = {
        "name": plugin_list_name(base, part),
        "owner": OWNER,
        "metadata": {"description": about},
        "plugins": [_entry(call, base, one) for one in taken],
    }
    return json_response(body, max_age=60)


def _entry(call: ApiCall, base: str, plugin: Plugin) -> dict[str, Any]:
    warning = said_of(plugin.version).warning
    description = " ".join(part for part in (warning, described(plugin)) if part)
    return {
        "name": plugin.slug,
        "description": description[:_LONGEST_DESCRIPTION],
        "homepage": f"{base}{skill_href(plugin.slug)}",
        "source": {
            "source": "git-subdir",
            "url": repository_url(base, plugin.handle, plugin.slug),
            "path": plugin_folder(plugin.slug),
            # The version is in the manifest of the plugin; this pins its bytes.
            "sha": version_commit(call.env, plugin.slug, plugin.version).id.hex(),
        },
    }
