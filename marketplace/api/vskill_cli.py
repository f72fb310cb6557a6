"""The dialect of the vskill client: search, updates, differences, block list."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse

from marketplace.api.bounds import MOST_CHECKED, VSKILL_SEARCH_LIMIT
from marketplace.api.filters import OF_SEARCHES, filters_of
from marketplace.api.http import (
    SAFE,
    ApiCall,
    ApiError,
    api_view,
    json_body,
    json_response,
    parameter,
    requested_limit,
    takes_only,
)
from marketplace.api.lookup import archive_content, exact_version, named_skill, visible_skill
from marketplace.api.shapes import search_fields, skill_shape
from marketplace.api.trust import said_of_skill
from marketplace.artifacts.archives import read_member
from marketplace.artifacts.diffs import FileChange, compare
from marketplace.catalog import is_visible
from marketplace.judgement import flagged
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.answers import search_answer
from marketplace.skills.versions import parse_version
from marketplace.skills.withdrawal import why_withdrawn
from vskill.accounts.access import asks_for
from vskill.accounts.roles import Action
from vskill.environments import WorkerEnv
from vskill.visitors.reads import list_reads


@api_view(*SAFE, reads=list_reads)
def search(call: ApiCall) -> HttpResponse:
    """Search for ``q`` among what the filters leave, as many as ``limit``, and tell whether there are more."""
    takes_only(call, "q", "limit", *OF_SEARCHES)
    limit = requested_limit(call, *VSKILL_SEARCH_LIMIT)
    answer = search_answer(call.env, filters_of(call), limit=limit + 1)
    results = [{**skill_shape(hit.skill, None), "score": round(hit.score, 4)} for hit in answer.hits[:limit]]
    more = {"hasMore": len(answer.hits) > limit}
    return json_response({"results": results, "pagination": more, **search_fields(answer)})


@asks_for(Action.READ)
@api_view("POST")
def check_updates(call: ApiCall) -> HttpResponse:
    """Return for each installed skill whether there is a newer version; names are returned as they were sent."""
    installed = json_body(call).get("skills")
    if not isinstance(installed, list) or len(installed) > MOST_CHECKED:
        raise ApiError(400, f"Send at most {MOST_CHECKED} skills as a list.")
    return json_response({"results": [_update(call.env, item) for item in installed if isinstance(item, dict)]})


def _update(env: WorkerEnv, item: dict[str, Any]) -> dict[str, Any]:
    name, installed = str(item.get("name", "")), str(item.get("currentVersion", ""))
    try:
        skill = visible_skill(env, **named_parts(name), hidden=True, suggest=False)
    except ApiError:
        return {"name": name, "installed": installed, "latest": None, "updateAvailable": False}
    reason = why_withdrawn(env, skill.identity, installed)
    told: dict[str, Any] = (
        {"withdrawn": True, "diffSummary": reason} if reason else _told_of_flag(env, skill, installed)
    )
    if not is_visible(skill):
        return {"name": name, "installed": installed, "latest": None, "updateAvailable": False, **told}
    latest, present = parse_version(skill.latest_version), parse_version(installed)
    newer = latest is not None and (latest > present if present is not None else skill.latest_version != installed)
    return {
        "name": name,
        "installed": installed,
        "latest": skill.latest_version or None,
        "updateAvailable": newer,
        "certTier": said_of_skill(skill).certification_tier if skill.latest_version else "",
        **told,
    }


def named_parts(name: str) -> dict[str, str]:
    """Return the ``slug`` of a skill that a client names, and its ``owner`` and ``repo`` where the name has them.

    A name is a slug, ``@owner/slug`` or ``owner/repository/slug``.
    """
    parts = name.split("/")
    if len(parts) == 3:
        return dict(zip(("owner", "repo", "slug"), parts, strict=True))
    if len(parts) == 2 and name.startswith("@"):
        return dict(zip(("owner", "slug"), parts, strict=True))
    return {"slug": name}


def _told_of_flag(env: WorkerEnv, skill: SkillEntry, installed: str) -> dict[str, Any]:
    versions = SkillVersion.objects.using(env.database).filter(namespace=env.name, skill=skill, version=installed)
    reason = flagged(versions.values_list("flag_reason", flat=True).first() or "")
    return {"flagged": True, "diffSummary": reason} if reason else {}


@asks_for(Action.READ)
@api_view("POST")
def installs(call: ApiCall) -> HttpResponse:
    """Accept a report of installs and ignore it: downloads are counted where they happen, and reports prove none."""
    json_body(call)
    return json_response({"ok": True, "counted": False})


@api_view(*SAFE)
def difference(call: ApiCall) -> HttpResponse:
    """Answer ``versions/diff``: a summary of what changed, and one patch."""
    changes = _compare(call)
    patches = [f"--- {one.path}\n+++ {one.path}\n{one.patch}" for one in changes if one.patch]
    counts = [f"{one.status} {one.path}{' (too large to count)' if one.is_too_large else ''}" for one in changes]
    return json_response(
        {
            "from": parameter(call, "from"),
            "to": parameter(call, "to"),
            "diffSummary": ", ".join(counts) or "nothing changed",
            "contentDiff": "\n".join(patches),
        }
    )


@api_view(*SAFE)
def comparison(call: ApiCall) -> HttpResponse:
    """Answer ``versions/compare``: each changed file with its patch."""
    files = [
        {
            "filename": one.path,
            "status": one.status,
            "additions": one.additions,
            "deletions": one.deletions,
            "tooLarge": one.is_too_large,
            "patch": one.patch,
        }
        for one in _compare(call)
    ]
    return json_response({"source": "local-content", "files": files})


def _compare(call: ApiCall) -> list[FileChange]:
    skill = named_skill(call)
    before, after = (exact_version(call.env, skill, parameter(call, name)) for name in ("from", "to"))
    archives = {version.pk: archive_content(call.env, version.zip_sha256) for version in (before, after)}

    def read_file(version: SkillVersion, path: str) -> bytes:
        return read_member(archives[version.pk], path)

    return compare(before, after, read_file)
