"""The addresses of badges, cards and oEmbed."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote, urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from marketplace.addresses import public_base, publisher_href, skill_href
from marketplace.api.http import (
    SAFE,
    ApiCall,
    ApiError,
    allow_any_origin,
    api_view,
    json_response,
    parameter,
    tagged_response,
)
from marketplace.api.lookup import visible_skill
from marketplace.badges.badge import NOT_FOUND, WITHDRAWN, drawn, said_of
from marketplace.catalog import find_skill_sync, find_version_sync, is_visible
from marketplace.judgement import verdict_of
from marketplace.models import SkillEntry, SkillVersion
from vskill.environments import WorkerEnv
from vskill.visitors.reads import page_reads
from vskill.worker_context import require_worker_env

# As on every page, but with fewer things allowed, and in a frame of anybody.
CARD_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors *"
)
WIDTH, HEIGHT = 420, 180
_SVG: Final = "image/svg+xml"
_LONGEST_VERSION: Final = 64
_LONGEST_ADDRESS: Final = 1_024


@api_view(*SAFE)
def badge(call: ApiCall) -> HttpResponseBase:
    """Return the badge of the latest version of a skill, or of ``version``.

    There is one for what is not there as well, grey and with 404, and for what is withheld, with 410.
    """
    skill, version = _found(call.env, call.path_parameters["slug"], parameter(call, "version"))
    said = said_of(skill, version, exact="version" in call.request.GET) if skill is not None else NOT_FOUND
    status = {NOT_FOUND: 404, WITHDRAWN: 410}.get(said)
    if status is None:
        return tagged_response(call, drawn(said), _SVG)
    # Without an ETag: browsers show the picture of an error, and programs see that it is one.
    answer = allow_any_origin(HttpResponse(drawn(said), status=status, content_type=_SVG))
    answer["Cache-Control"] = "no-cache"
    return answer


@xframe_options_exempt
@require_safe
async def card(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a skill as a small page for a frame on another site: who, what, verdict; no forms and no scripts."""
    env = require_worker_env()
    context = await page_reads.run(_card, env, slug, public_base(request, env))
    response = render(request, "marketplace/card.html", context, status=200 if context["found"] else 404)
    response["Content-Security-Policy"] = CARD_POLICY
    response["Cache-Control"] = "no-cache"
    return response


@api_view(*SAFE)
def oembed(call: ApiCall) -> HttpResponse:
    """Answer as oEmbed 1.0 has it for the ``url`` of a skill's page: a frame with its card."""
    base = public_base(call.request, call.env)
    form = parameter(call, "format")
    if form not in ("", "json"):
        raise ApiError(501, "This registry answers oEmbed in JSON alone.")
    given, start = parameter(call, "url", longest=_LONGEST_ADDRESS), base + skill_href("-").removesuffix("-")
    slug = unquote(given.removeprefix(start).partition("#")[0].partition("?")[0])
    if not given.startswith(start) or not slug or "/" in slug:
        raise ApiError(404, f"The parameter url is the address of a skill's page: {start}SLUG.")
    skill = visible_skill(call.env, slug)
    width, height = min(WIDTH, _number(call, "maxwidth", WIDTH)), min(HEIGHT, _number(call, "maxheight", HEIGHT))
    body = {
        "version": "1.0",
        "type": "rich",
        "provider_name": "vskill",
        "provider_url": base,
        "title": skill.slug,
        "author_name": skill.publisher_handle,
        "author_url": base + publisher_href(skill.publisher_handle),
        "width": width,
        "height": height,
        "html": frame(base, skill.slug, width, height),
    }
    return json_response(body)


def _found(env: WorkerEnv, slug: str, version: str) -> tuple[SkillEntry | None, SkillVersion | None]:
    skill = find_skill_sync(env, slug, hidden=True)
    if skill is None or not is_visible(skill) or len(version) > _LONGEST_VERSION:
        return skill, None
    return skill, find_version_sync(env, skill, version) if version or skill.latest_version else None


def _card(env: WorkerEnv, slug: str, base: str) -> dict[str, Any]:
    skill, version = _found(env, slug, "")
    if skill is None or not is_visible(skill) or version is None:
        return {"found": False, "href": base}
    return {
        "found": True,
        "name": skill.display_name or skill.name,
        "owner": skill.publisher_handle,
        "description": skill.description,
        "version": version.version,
        "verdict": verdict_of(version),
        "flag_reason": version.flag_reason,
        "href": base + skill_href(skill.slug),
    }


def _number(call: ApiCall, name: str, default: int) -> int:
    given = parameter(call, name, longest=6)
    if given and not (given.isascii() and given.isdigit()):
        raise ApiError(400, f"The parameter {name} is a number of pixels.")
    return max(1, int(given)) if given else default


def frame(base: str, slug: str, width: int = WIDTH, height: int = HEIGHT) -> str:
    """Return the HTML of a frame with the card of a skill, ``width`` and ``height`` in pixels.

    ``base`` is the address of the registry. A slug needs no quoting.
    """
    address = f"{base}{skill_href(slug, 'card')}"
    return f'<iframe src="{address}" width="{width}" height="{height}" title="{slug}"></iframe>'


def oembed_path(base: str, slug: str) -> str:
    """Return the query string by which oEmbed is asked about a skill's page."""
    return urlencode({"url": base + skill_href(slug), "format": "json"})
