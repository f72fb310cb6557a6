"""The dialect of the clawhub client: discovery, search, lists, details, versions, resolve, install, moderation, verify.

The client checks bodies against strict schemas: times are numbers, some keys are required, some must not be null. It
prints errors as they are, so they are plain text.
"""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse

from marketplace.addresses import public_base, repository_of
from marketplace.api.bounds import LIST_LIMIT, LONGEST_CURSOR, SEARCH_LIMIT
from marketplace.api.contract import contract_fields
from marketplace.api.filters import OF_LISTS, OF_SEARCHES, filters_of
from marketplace.api.http import (
    SAFE,
    ApiCall,
    ApiError,
    api_view,
    json_response,
    parameter,
    requested_limit,
    takes_only,
    text_response,
)
from marketplace.api.lookup import exact_version, named_skill, requested_version, visible_skill, with_latest_versions
from marketplace.api.provenance import signature_fields
from marketplace.api.shapes import (
    HIT_COLUMNS,
    content_fields,
    hit_shape,
    list_item,
    owner_shape,
    search_fields,
    skill_shape,
    version_shape,
    vskill_version,
    withheld_shape,
)
from marketplace.api.trust import evidence, milliseconds, moderation, said_of, scan_fields
from marketplace.artifacts.archives import MANIFEST_NAME
from marketplace.catalog import SORTS, fetchable_versions, find_version_sync, is_visible, list_skills
from marketplace.install_lines.skill import lines_of_skill
from marketplace.judgement import verdict_of
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.answers import search_answer
from marketplace.skills.listing import check_order
from marketplace.skills.newest_scan import newest_scan
from marketplace.skills.slugs import base_slug
from marketplace.skills.visibility import light_versions
from marketplace.skills.withdrawal import nothing_offered
from marketplace.stars import stars_of
from vskill.kv.keyset import binding_of, keyset_page
from vskill.visitors.reads import list_reads

# clawhub's names of sort orders. Skills have no ratings here, so its two orders by rating are the order by downloads.
_SORTS: Final = {"": "updated", "createdAt": "newest"} | dict.fromkeys(("stars", "rating", "installs"), "downloads")


@api_view(*SAFE)
def discovery(call: ApiCall) -> HttpResponse:
    """Return the base URL of the API, for a client that knows only the address of the site."""
    base = public_base(call.request, call.env)
    return json_response({"apiBase": base, "authBase": base, "minCliVersion": "0.0.1"}, max_age=3600)


@api_view(*SAFE, reads=list_reads)
def search(call: ApiCall) -> HttpResponse:
    """Search for ``q`` among what the filters leave, or look up one slug with ``mode=exact``; best hits come first."""
    takes_only(call, "q", "limit", "mode", *OF_SEARCHES)
    filters, limit = filters_of(call), requested_limit(call, *SEARCH_LIMIT)
    if (mode := parameter(call, "mode")) not in ("", "exact"):
        raise ApiError(400, f"There is no mode {mode[:40]!r}. The only one is exact.")
    answer = search_answer(call.env, filters, limit=limit, columns=HIT_COLUMNS)
    hits = [(hit.skill, hit.score) for hit in answer.hits]
    if mode:
        hits = [(skill, score) for skill, score in hits if skill.slug == base_slug(filters.query)]
    results = [hit_shape(skill, score) for skill, score in hits]
    return json_response({"results": results, **search_fields(answer)})


@api_view(*SAFE, reads=list_reads)
def skills(call: ApiCall) -> HttpResponse:
    """List published skills: ``items`` and ``nextCursor``, which is null on the last page."""
    takes_only(call, "limit", "cursor", "sort", "q", *OF_LISTS)
    given = parameter(call, "sort")
    sort = _SORTS.get(given, given)
    filters = filters_of(call)
    check_order(sort, SORTS, with_words=bool(filters.query))
    cursor = parameter(call, "cursor", longest=LONGEST_CURSOR) or None
    limit = requested_limit(call, *LIST_LIMIT)
    page = list_skills(call.env, filters, sort=sort, limit=limit, cursor=cursor, strict=True)
    items = [list_item(offered.skill, offered.latest) for offered in with_latest_versions(call.env, page.skills)]
    return json_response({"items": items, "nextCursor": page.next_cursor, **search_fields(page)})


@api_view(*SAFE)
def detail(call: ApiCall) -> HttpResponse:
    """Describe one skill, with the text of its SKILL.md for clients that install only that file.

    A withheld skill has no latest version and nothing of its author's, so that ``clawhub update --all`` asks how to
    install it, prints the reason and goes on.
    """
    skill = named_skill(call, hidden=True)
    if not is_visible(skill):
        shape = withheld_shape(skill)
        nothing = dict.fromkeys(("latestVersion", "metadata", "owner", "moderation"))
        return json_response({"skill": shape, **nothing, "blocked": True})
    latest = find_version_sync(call.env, skill) if skill.latest_version else None
    shape = skill_shape(skill, latest)
    shape["stats"]["stars"] = stars_of(call.env, skill)
    if latest is None:
        shape["summary"] = f"{nothing_offered(call.env, skill)} {shape['summary']}"
    body: dict[str, Any] = {
        "skill": {**shape, **content_fields(latest)} if latest is not None else shape,
        "latestVersion": version_shape(latest) if latest is not None else None,
        "metadata": None,
        "owner": owner_shape(skill),
        "moderation": moderation(latest) if latest is not None else None,
    }
    if latest is not None:
        body |= contract_fields(call.env, latest)
        lines = lines_of_skill(call.env, skill, latest, public_base(call.request, call.env))
        body["install"] = [{"client": one.key, "command": one.command} for one in lines]
    return json_response(body)


@api_view(*SAFE)
def versions(call: ApiCall) -> HttpResponse:
    """List the versions of a skill, newest first: ``items`` for clawhub, ``versions`` for vskill."""
    takes_only(call, "limit", "cursor", "ownerHandle")
    skill = named_skill(call)
    rows = fetchable_versions(
        SkillVersion.objects.using(call.env.database).filter(namespace=call.env.name, skill=skill)
    )
    found, following = keyset_page(
        light_versions(rows),
        ("-ordinal",),
        binding=binding_of(call.env.name, "versions", skill.pk),
        cursor=parameter(call, "cursor", longest=LONGEST_CURSOR),
        limit=requested_limit(call, *LIST_LIMIT),
    )
    return json_response(
        {
            "items": [version_shape(version) for version in found],
            "versions": [vskill_version(version) for version in found],
            "nextCursor": following,
        }
    )


@api_view(*SAFE)
def version(call: ApiCall) -> HttpResponse:
    """Describe one version with its files and the result of its scan."""
    skill = named_skill(call)
    found = exact_version(call.env, skill, call.path_parameters["version"])
    files = [
        {
            "path": file["path"],
            "size": file["size"],
            "sha256": file["sha256"],
            "contentType": "text/markdown" if file["path"] == MANIFEST_NAME else "application/octet-stream",
        }
        for file in found.manifest
    ]
    said, newest = said_of(found), newest_scan(found)
    security = {
        "status": said.security,
        "hasWarnings": bool(newest.findings) or bool(said.warning),
        "checkedAt": milliseconds(newest.scanned_at),
        "model": None,
    }
    return json_response(
        {
            "version": {
                **version_shape(found),
                "files": files,
                "security": security,
                **contract_fields(call.env, found),
            },
            "skill": {"slug": skill.slug, "displayName": skill.display_name or skill.name},
        }
    )


@api_view(*SAFE)
def resolve(call: ApiCall) -> HttpResponse:
    """Return the version with the fingerprint ``hash``, which a client computed from its files, and the latest one."""
    skill = visible_skill(call.env, parameter(call, "slug"), owner=parameter(call, "ownerHandle"))
    rows = fetchable_versions(
        SkillVersion.objects.using(call.env.database).filter(namespace=call.env.name, skill=skill)
    )
    matches = rows.filter(fingerprint=parameter(call, "hash")).order_by("-ordinal")
    match = matches.values_list("version", flat=True).first()
    return json_response(
        {
            "slug": skill.slug,
            "match": {"version": match} if match else None,
            "latestVersion": {"version": skill.latest_version} if skill.latest_version else None,
        }
    )


@api_view(*SAFE)
def install(call: ApiCall) -> HttpResponse:
    """Return the URL of the archive that installs a skill, or 410 with the reason in the form that clawhub prints."""
    skill = named_skill(call, hidden=True)
    if not is_visible(skill) or not skill.latest_version:
        said = nothing_offered(call.env, skill)
        # The client knows a few reasons only; it prints the message.
        gone = {"ok": False, "slug": skill.slug, "reason": "archive_version_missing", "message": said, "status": 410}
        return json_response(gone, 410)
    found = exact_version(call.env, skill, "")
    address = f"{public_base(call.request, call.env)}/api/v1/download?slug={skill.slug}&version={found.version}"
    archive = {"version": found.version, "downloadUrl": address}
    return json_response({"ok": True, "slug": skill.slug, "installKind": "archive", "archive": archive})


@api_view(*SAFE)
def moderated(call: ApiCall) -> HttpResponse:
    """Return the findings of the newest scan of the latest version as evidence."""
    found = exact_version(call.env, named_skill(call), "")
    stated = moderation(found)
    if stated is None:
        return json_response({"moderation": None, "verdictWarning": said_of(found).warning})
    return json_response({"moderation": {**stated, "legacyReason": None, "evidence": evidence(found)}})


@api_view(*SAFE)
def verify(call: ApiCall) -> HttpResponse:
    """Return what is known about a version: its verdict, its newest scan, the digest of its archive, its provenance."""
    skill = named_skill(call)
    found = requested_version(call, skill)
    return json_response(_verification(call, skill, found))


def _verification(call: ApiCall, skill: SkillEntry, found: SkillVersion) -> dict[str, Any]:
    base = public_base(call.request, call.env)
    tag = parameter(call, "tag") or None
    said = said_of(found)
    reasons = [f"yanked: {found.yank_reason}"] if found.yanked_at is not None else []
    reasons += [said.warning] if said.warning else []
    return {
        "schema": "clawhub.skill.verify.v1",
        "ok": not reasons,
        "decision": "fail" if reasons else "pass",
        "reasons": reasons,
        "slug": skill.slug,
        "displayName": skill.display_name or skill.name,
        "pageUrl": f"{base}/skills/{skill.slug}",
        "publisherHandle": skill.publisher_handle or None,
        "publisherDisplayName": None,
        "publisherProfileUrl": f"{base}/publishers/{skill.publisher_handle}",
        "version": found.version,
        "resolvedFrom": "version" if parameter(call, "version") else "tag" if tag else "latest",
        "tag": tag,
        "createdAt": milliseconds(found.created_at),
        "card": {"available": False},
        "artifact": {"kind": "zip", "sha256": found.zip_sha256, "size": found.zip_size},
        "provenance": {
            "repository": repository_of(skill.repo_url, found.repo_url),
            "path": skill.skill_path if found.skill_path is None else found.skill_path,
            "commit": found.commit_sha,
            "ref": found.source_ref or None,
        },
        "security": {"status": verdict_of(found), "summary": found.verdict_summary, **scan_fields(found)},
        "signature": signature_fields(call.env, found, base),
    }


def not_offered(what: str) -> Any:
    """Return a view that answers 404 and says in words that this registry does not offer ``what``."""

    @api_view("GET", "HEAD", "POST", "PUT", "DELETE")
    def view(_call: ApiCall) -> HttpResponse:
        return text_response(f"This registry does not offer {what}.", 404)

    return view
