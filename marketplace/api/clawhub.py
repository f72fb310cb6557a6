"""The dialect of the clawhub client: discovery, search, lists, details, versions, resolve, install, moderation, verify.

Its schemas are strict: times are numbers, some keys must be there, some must not be null. Errors are plain text,
which it prints.
"""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse

from marketplace.addresses import public_base
from marketplace.api.http import SAFE, Asked, Refused, api_view, json_answer, limit_of, parameter, text
from marketplace.api.lookup import exact_version, named_skill, visible_skill, wanted_version, with_latest_versions
from marketplace.api.shapes import (
    content_fields,
    list_item,
    owner_shape,
    skill_shape,
    version_shape,
    vskill_version,
)
from marketplace.api.trust import evidence, milliseconds, moderation
from marketplace.artifacts.archives import MANIFEST_NAME
from marketplace.catalog import SORTS, SkillFilters, fetchable_versions, find_version_sync, list_skills
from marketplace.errors import InvalidListing
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.search import search_sync
from marketplace.skills.slugs import base_slug

# clawhub's names of orders; nobody rates skills here, so its two rankings by opinion are the one by downloads.
_SORTS: Final = {
    "": "updated",
    "createdAt": "newest",
    "stars": "downloads",
    "rating": "downloads",
    "installs": "downloads",
}


@api_view(*SAFE)
def discovery(asked: Asked) -> HttpResponse:
    """Say where the API is, for a client that was given the address of the site."""
    base = public_base(asked.request, asked.env)
    return json_answer({"apiBase": base, "authBase": base, "minCliVersion": "0.0.1"}, max_age=3600)


@api_view(*SAFE)
def search(asked: Asked) -> HttpResponse:
    """Search, or look one slug up with ``mode=exact``."""
    query, limit = parameter(asked, "q"), limit_of(asked, 25, 100)
    hits = [(hit.skill, hit.score) for hit in search_sync(asked.env, query, limit=limit)]
    if parameter(asked, "mode") == "exact":
        hits = [(skill, score) for skill, score in hits if skill.slug == base_slug(query)]
    results = [
        {
            "score": round(score, 4),
            "slug": skill.slug,
            "displayName": skill.display_name or skill.name,
            "summary": skill.description,
            "version": skill.latest_version,
            "downloads": skill.downloads,
            "updatedAt": milliseconds(skill.changed_at),
            "ownerHandle": skill.publisher_handle,
            "owner": owner_shape(skill),
        }
        for skill, score in hits
    ]
    return json_answer({"results": results})


@api_view(*SAFE)
def skills(asked: Asked) -> HttpResponse:
    """List what is published: ``items`` and ``nextCursor``."""
    given = parameter(asked, "sort")
    sort = _SORTS.get(given, given)
    names = ("publisher", "verdict", "license", "tag", "capability", "prefix")
    filters = SkillFilters(query=parameter(asked, "q"), **{name: parameter(asked, name) for name in names})
    if sort not in SORTS:
        raise InvalidListing(f"A list has no order {given!r}. Choose one of {', '.join(SORTS)}.")
    cursor = parameter(asked, "cursor", longest=2000) or None
    page = list_skills(asked.env, filters, sort=sort, limit=limit_of(asked, 25, 200), cursor=cursor)
    items = [list_item(offered.skill, offered.latest) for offered in with_latest_versions(asked.env, page.skills)]
    return json_answer({"items": items, "nextCursor": page.next_cursor})


@api_view(*SAFE)
def detail(asked: Asked) -> HttpResponse:
    """Describe one skill, with the text of its SKILL.md for clients that install that alone."""
    skill = named_skill(asked)
    latest = find_version_sync(asked.env, skill) if skill.latest_version else None
    shape = skill_shape(skill, latest)
    body: dict[str, Any] = {
        "skill": {**shape, **content_fields(latest)} if latest is not None else shape,
        "latestVersion": version_shape(latest) if latest is not None else None,
        "metadata": None,
        "owner": owner_shape(skill),
        "moderation": moderation(latest) if latest is not None else None,
    }
    return json_answer(body)


@api_view(*SAFE)
def versions(asked: Asked) -> HttpResponse:
    """List the versions of a skill, the newest first: ``items`` for clawhub, ``versions`` for vskill."""
    skill = named_skill(asked)
    limit, cursor = limit_of(asked, 25, 200), parameter(asked, "cursor")
    rows = fetchable_versions(
        SkillVersion.objects.using(asked.env.database).filter(namespace=asked.env.name, skill=skill)
    )
    if cursor:
        if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 18:
            raise Refused(400, "This cursor belongs to another list, or is none. Start again without it.")
        rows = rows.filter(ordinal__lt=int(cursor))
    found = list(rows.defer("skill_md", "findings", "manifest").order_by("-ordinal")[: limit + 1])
    following = str(found[limit - 1].ordinal) if len(found) > limit else None
    return json_answer(
        {
            "items": [version_shape(version) for version in found[:limit]],
            "versions": [vskill_version(version) for version in found[:limit]],
            "nextCursor": following,
        }
    )


@api_view(*SAFE)
def version(asked: Asked) -> HttpResponse:
    """Describe one version with its files and how its scan ended."""
    skill = named_skill(asked)
    found = exact_version(asked.env, skill, asked.arguments["version"])
    files = [
        {
            "path": file["path"],
            "size": file["size"],
            "sha256": file["sha256"],
            "contentType": "text/markdown" if file["path"] == MANIFEST_NAME else "application/octet-stream",
        }
        for file in found.manifest
    ]
    security = {
        "status": "clean",
        "hasWarnings": bool(found.findings),
        "checkedAt": milliseconds(found.created_at),
        "model": None,
    }
    return json_answer(
        {
            "version": {**version_shape(found), "files": files, "security": security},
            "skill": {"slug": skill.slug, "displayName": skill.display_name or skill.name},
        }
    )


@api_view(*SAFE)
def resolve(asked: Asked) -> HttpResponse:
    """Say which version has the fingerprint that a client computed of its files, and which is the latest."""
    skill = visible_skill(asked.env, parameter(asked, "slug"), owner=parameter(asked, "ownerHandle"))
    rows = fetchable_versions(
        SkillVersion.objects.using(asked.env.database).filter(namespace=asked.env.name, skill=skill)
    )
    matches = rows.filter(fingerprint=parameter(asked, "hash")).order_by("-ordinal")
    match = matches.values_list("version", flat=True).first()
    return json_answer(
        {
            "slug": skill.slug,
            "match": {"version": match} if match else None,
            "latestVersion": {"version": skill.latest_version} if skill.latest_version else None,
        }
    )


@api_view(*SAFE)
def install(asked: Asked) -> HttpResponse:
    """Say what to download in order to install a skill."""
    skill = named_skill(asked)
    found = exact_version(asked.env, skill, "")
    address = f"{public_base(asked.request, asked.env)}/api/v1/download?slug={skill.slug}&version={found.version}"
    archive = {"version": found.version, "downloadUrl": address}
    return json_answer({"ok": True, "slug": skill.slug, "installKind": "archive", "archive": archive})


@api_view(*SAFE)
def moderated(asked: Asked) -> HttpResponse:
    """Return what the scan of the latest version found, as evidence."""
    found = exact_version(asked.env, named_skill(asked), "")
    return json_answer({"moderation": {**moderation(found), "legacyReason": None, "evidence": evidence(found)}})


@api_view(*SAFE)
def verify(asked: Asked) -> HttpResponse:
    """Say what is known of a version: its verdict, its archive's digest, where it came from."""
    skill = named_skill(asked)
    found = wanted_version(asked, skill)
    return json_answer(_verification(asked, skill, found))


def _verification(asked: Asked, skill: SkillEntry, found: SkillVersion) -> dict[str, Any]:
    base = public_base(asked.request, asked.env)
    tag = parameter(asked, "tag") or None
    yanked = [f"yanked: {found.yank_reason}"] if found.yanked_at is not None else []
    return {
        "schema": "clawhub.skill.verify.v1",
        "ok": not yanked,
        "decision": "fail" if yanked else "pass",
        "reasons": yanked,
        "slug": skill.slug,
        "displayName": skill.display_name or skill.name,
        "pageUrl": f"{base}/skills/{skill.slug}",
        "publisherHandle": skill.publisher_handle or None,
        "publisherDisplayName": None,
        "publisherProfileUrl": f"{base}/publishers/{skill.publisher_handle}",
        "version": found.version,
        "resolvedFrom": "version" if parameter(asked, "version") else "tag" if tag else "latest",
        "tag": tag,
        "createdAt": milliseconds(found.created_at),
        "card": {"available": False},
        "artifact": {"kind": "zip", "sha256": found.zip_sha256, "size": found.zip_size},
        "provenance": {"repository": skill.repo_url, "path": skill.skill_path, "commit": found.commit_sha},
        "security": {"status": found.verdict, "summary": found.verdict_summary, "engines": found.engines},
        "signature": {"status": "unsigned"},
    }


def not_offered(what: str) -> Any:
    """Return a view that says in words that this registry does not offer ``what``."""

    @api_view("GET", "HEAD", "POST", "PUT", "DELETE")
    def view(_asked: Asked) -> HttpResponse:
        return text(f"This registry does not offer {what}.", 404)

    return view
