"""The pages of the marketplace: home, list, skill, file, image, scan, publisher, verification and API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlencode

from django.core.handlers.asgi import ASGIRequest
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponsePermanentRedirect,
    HttpResponseRedirect,
)
from django.shortcuts import render
from django.templatetags.static import static
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

from marketplace.addresses import file_href, present_page, public_base, publisher_href, skill_href
from marketplace.errors import InvalidLines, InvalidListing
from marketplace.install_lines.clients import clawhub_registry
from marketplace.install_lines.skill import lines_of_skill, needs_token
from marketplace.pages import scan_report
from marketplace.pages import skill as skill_page
from marketplace.pages.absence import absent, no_file
from marketplace.pages.api_guide import GROUPS, examples
from marketplace.pages.chosen import read_chosen
from marketplace.pages.collection import links_of
from marketplace.pages.contract import contract_of_version
from marketplace.pages.decide import deciding
from marketplace.pages.external import external_opinions
from marketplace.pages.file import file_context
from marketplace.pages.file_parts import PARAMETER, at_line, read_lines
from marketplace.pages.images import image_response
from marketplace.pages.list_checks import OF_A_PUBLISHER, check_query
from marketplace.pages.list_query import ListQuery
from marketplace.pages.lists import home_context, list_context, publisher_context
from marketplace.pages.owner_views import led_to_publisher
from marketplace.pages.scan_times import scan_times
from marketplace.pages.signing import signing, signing_keys
from marketplace.pages.source_following import following
from marketplace.pages.source_health import repo_health
from marketplace.pages.tree import tree
from marketplace.pages.wording import CAPABILITIES, DEEDS, VERDICTS
from marketplace.skills.handles import present_handle
from marketplace.skills.near_filters import near_publishers
from vskill.visitors.reads import list_reads, page_reads
from vskill.web.absent import Near, NotThere
from vskill.web.query_strings import takes_several
from vskill.worker_context import require_worker_env

NO_PUBLISHER = "Nobody of this name has published a skill here."


@require_safe
async def home(request: HttpRequest) -> HttpResponse:
    """Show the figures of the registry, its newest skills and how a skill gets published."""
    env = require_worker_env()
    client_line = f"export {clawhub_registry(public_base(request, env))}"

    def context() -> dict[str, Any]:
        return {**home_context(env), "client_line": client_line}

    return await list_reads.render(request, "marketplace/home.html", context)


@require_safe
@takes_several("compare")
async def skills(request: HttpRequest) -> HttpResponse:
    """Show one page of the list that the query string describes."""
    try:
        check_query(request.GET)
        query = ListQuery.read(request.GET, read_chosen(request.GET.getlist("compare")))
        return await list_reads.render(request, "marketplace/skills.html", list_context, require_worker_env(), query)
    except InvalidListing as error:
        return render(request, "400.html", {"message": str(error)}, status=400)


@require_safe
async def publisher(request: HttpRequest, handle: str) -> HttpResponse:
    """Show the skills of one publisher."""
    env = require_worker_env()
    if (present := await page_reads.run(present_handle, env, handle)) != handle:
        return led_to_publisher(request, handle, present)

    def context() -> dict[str, Any]:
        found = publisher_context(env, handle, ListQuery.read(request.GET).cursor)
        if found is None:
            near = near_publishers(env, handle)
            raise NotThere(NO_PUBLISHER, [Near(name, publisher_href(name)) for name in near])
        return found

    try:
        check_query(request.GET, OF_A_PUBLISHER)
        return await list_reads.render(request, "marketplace/publisher.html", context)
    except InvalidListing as error:
        return render(request, "400.html", {"message": str(error)}, status=400)


@require_safe
async def skill(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a skill: verdict, capabilities, install commands, text, files, scan, versions and provenance."""
    env = require_worker_env()
    base = public_base(request, env)

    def page(found: skill_page.Found) -> dict[str, Any]:
        return {
            **skill_page.head(found),
            **scan_report.scan(found),
            "contract": contract_of_version(env, found.version),
            "readme": skill_page.readme(found),
            "files": scan_report.files(found),
            "versions": skill_page.versions(env, found),
            "install": lines_of_skill(env, found.skill, found.version, base),
            "install_token": needs_token(env, found.skill),
            "repo_health": repo_health(env, found),
            "following": following(env, found),
            "external": external_opinions(env, found),
            "deciding": deciding(env, found),
            "collections": links_of(env, found),
            "signing": signing(env, found, base),
        }

    return await _page_of_skill(request, slug, "", "marketplace/skill.html", page)


@require_safe
async def version_page(_request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """Lead from the address below which clients find one version of a skill to the page of that version."""
    return HttpResponsePermanentRedirect(f"{skill_href(slug)}?{urlencode({'version': version})}")


@require_safe
async def scan(request: HttpRequest, slug: str) -> HttpResponse:
    """Show all findings of a version, and the engines that ran."""
    env = require_worker_env()

    def page(found: skill_page.Found) -> dict[str, Any]:
        return {
            **skill_page.head(found),
            **scan_report.scan(found),
            "times": scan_times(env, found),
            "external": external_opinions(env, found),
        }

    return await _page_of_skill(request, slug, "scan", "marketplace/scan.html", page)


@require_safe
async def files(request: HttpRequest, slug: str) -> HttpResponse:
    """Show all files of a version as a tree."""

    def page(found: skill_page.Found) -> dict[str, Any]:
        listed = scan_report.files(found)
        return {**skill_page.head(found), "rows": tree(listed), "count": len(listed)}

    return await _page_of_skill(request, slug, "files", "marketplace/files.html", page)


@require_safe
async def file(request: HttpRequest, slug: str, path: str) -> HttpResponse:
    """Show one file of a version with line numbers, a part of it where it is long.

    ``lines`` names a part, or any lines of one, which then leads there and picks them.
    """
    env = require_worker_env()
    below = file_href("x", path).removeprefix(skill_href("x") + "/")

    def page(found: skill_page.Found) -> dict[str, Any] | HttpResponse:
        shown = file_context(env, found, path, lines)
        archive, inside, _ = path.partition("!/")
        if shown is None and inside and found.version.file(archive) is not None:
            # Findings name a file in an archive so; what was found in it stands on the page of the archive.
            return HttpResponseRedirect(file_href(found.skill.slug, archive) + found.exact)
        if shown is None:
            raise no_file(found, path)
        return {**skill_page.head(found), **shown}

    try:
        lines = read_lines(request.GET.get(PARAMETER, ""))
        if not lines.is_part:
            version = request.GET.get("version", "")
            address = skill_href(slug, below) + (f"?{urlencode({'version': version})}" if version else "")
            return HttpResponseRedirect(at_line(address, lines.first, lines.fragment))
        return await _page_of_skill(request, slug, below, "marketplace/file.html", page)
    except InvalidLines as error:
        return render(request, "400.html", {"message": str(error)}, status=400)


@require_safe
async def image(request: HttpRequest, slug: str, path: str) -> HttpResponseBase:
    """Send one image of a version, for the texts that show it."""
    env = require_worker_env()
    version = _version_of(request)
    asynchronous = isinstance(request, ASGIRequest)

    def read() -> HttpResponseBase:
        found = skill_page.find(env, slug, version)
        if found is None:
            raise absent(env, slug, version)
        return image_response(env, found, path, pinned=bool(version), asynchronous=asynchronous)

    response = await page_reads.run(read)
    # The stubs know no streamed response there; only its headers are read.
    unchanged = get_conditional_response(request, etag=response["ETag"], response=cast(HttpResponse, response))
    return unchanged or response


@require_safe
async def verification(request: HttpRequest) -> HttpResponse:
    """Explain each verdict, each capability, and with which keys the registry signs."""
    env = require_worker_env()

    def context() -> dict[str, Any]:
        words = {"verdicts": VERDICTS.items(), "deeds": DEEDS.items(), "capabilities": CAPABILITIES.items()}
        return {**words, "signing": signing_keys(env)}

    return await page_reads.render(request, "marketplace/verification.html", context)


@require_safe
async def api(request: HttpRequest) -> HttpResponse:
    """Explain how programs read, fetch and submit."""
    context = {"groups": GROUPS, "examples": examples(public_base(request, require_worker_env()))}
    return render(request, "marketplace/api.html", context)


@require_safe
async def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect browsers from the traditional path of the icon to ours."""
    return HttpResponsePermanentRedirect(static("vskill/favicon.svg"))


def _version_of(request: HttpRequest) -> str:
    # One character more than a number has, so that a longer text is no version and not the one it begins with.
    return request.GET.get("version", "")[:65]


async def _page_of_skill(
    request: HttpRequest,
    slug: str,
    below: str,
    template: str,
    page: Callable[[skill_page.Found], dict[str, Any] | HttpResponse],
) -> HttpResponse:
    """Render a page of one skill; a former slug redirects permanently to the same page under the present one.

    ``page`` returns the context of ``template``, or an answer in its place. ``below`` is the page's address below that
    of the skill.
    """
    env = require_worker_env()
    version = _version_of(request)

    def answer() -> HttpResponse:
        found = skill_page.find(env, slug, version)
        if found is None:
            raise absent(env, slug, version)
        if found.skill.slug != slug:
            return present_page(request, found.skill.slug, below)
        shown = page(found)
        return shown if isinstance(shown, HttpResponse) else render(request, template, shown)

    # Read and rendered on one thread, so that the event loop is free for others.
    return await page_reads.run(answer)
