"""The page and the API on which visitors and programs ask for another scan of a published version."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from marketplace.addresses import public_base, skill_href
from marketplace.external_scans import ExternalScan, ScanState
from marketplace.pages.external import EXTERNAL_WORDS
from marketplace.skills.near_names import near_slugs
from marketplace.skills.newest_scan import newest_scan
from submissions.api.answers import BadRequest, body_object, error_answer, errors_answered, not_allowed, texts_of
from submissions.external_scans.errors import NothingToScan, TooManyScans
from submissions.scan_again.ask import OwnScan, Standing, ask_again, standing
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict
from vskill.kv.threads import writers
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.visitors.reads import page_reads
from vskill.web.absent import Near, NotThere
from vskill.worker_context import require_worker_env

_LONGEST: Final = 64
_BUSY: Final = "Many ask for this at the same moment. Nothing was asked: try again in a few seconds."


@rated(Kind.SUBMISSIONS)
@require_http_methods(["GET", "HEAD", "POST"])
async def scan_again(request: HttpRequest, slug: str) -> HttpResponse:
    """Show where the scans of a version stand; a POST asks for another one first."""
    env = require_worker_env()
    values = request.POST if request.method == "POST" else request.GET
    version = values.get("version", "").replace("\0", "")[:_LONGEST]
    error, wait = "", 0
    if request.method == "POST":
        try:
            await writers.run(ask_again, env, slug, version, by="a visitor")
        except NothingToScan as missing:
            raise await _not_there(env, slug, missing) from missing
        except TooManyScans as refused:
            error, wait = str(refused), refused.retry_after
        except VersionConflict:
            error, wait = _BUSY, 10
        if not error:
            return redirect(f"{request.path}?{urlencode({'version': version})}" if version else request.path)
    try:
        context = await page_reads.run(_context, env, slug, version)
    except NothingToScan as missing:
        raise await _not_there(env, slug, missing) from missing
    response = render(request, "submissions/scan_again.html", {**context, "error": error}, status=429 if error else 200)
    response["Cache-Control"] = "no-store"
    if error:
        response["Retry-After"] = str(wait)
    return response


async def _not_there(env: WorkerEnv, slug: str, missing: NothingToScan) -> NotThere:
    near = await page_reads.run(near_slugs, env, slug)
    return NotThere(str(missing), [Near(name, skill_href(name)) for name in near])


def _context(env: WorkerEnv, slug: str, version: str) -> dict[str, Any]:
    stands = standing(env, slug, version)
    skill, found = stands.version.skill, stands.version
    newest = newest_scan(found)
    known = {one.provider: one for one in stands.external}
    query = f"?{urlencode({'version': version})}" if version else ""
    return {
        "stands": stands,
        "name": skill.display_name or skill.name,
        "version": found.version,
        "chosen": version,
        "skill_href": skill_href(skill.slug) + query,
        "report_href": skill_href(skill.slug, "scan") + query,
        "here": skill_href(skill.slug, "scan-again"),
        "scanned_at": newest.scanned_at,
        "engines": newest.named_engines,
        "own_is": {str(one): stands.own is one for one in OwnScan},
        "outside": [_outside(name, known.get(name)) for name in stands.scanners],
    }


def _outside(name: str, scan: ExternalScan | None) -> dict[str, Any]:
    words = EXTERNAL_WORDS[ScanState(scan.state)] if scan is not None else None
    return {"name": name, "scan": scan, "words": words}


# csrf_exempt: the API reads no cookie, so a browser cannot be made to ask in somebody's name.
@rated(Kind.SUBMISSIONS, Form.JSON)
@csrf_exempt
async def api_scan_again(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for another scan of a version: 202 where one was asked for, 200 where nothing new could be."""
    if request.method != "POST":
        return not_allowed(request, "POST")
    return await _ask(request, slug)


@errors_answered
async def _ask(request: HttpRequest, slug: str) -> JsonResponse:
    env = require_worker_env()
    version = texts_of(body_object(request), "version")["version"] if request.body else ""
    if len(version) > _LONGEST or "\0" in version:
        raise BadRequest("'version' is not the number of a version. Nothing was asked.")
    try:
        stands = await writers.run(ask_again, env, slug, version, by="the API")
    except NothingToScan as missing:
        return error_answer(missing, 404)
    except TooManyScans as refused:
        answer = error_answer(refused, 429)
        answer["Retry-After"] = str(refused.retry_after)
        return answer
    return JsonResponse(_as_json(public_base(request, env), stands), status=202 if stands.asked else 200)


def _as_json(base: str, stands: Standing) -> dict[str, Any]:
    slug = stands.version.skill.slug
    return {
        "slug": slug,
        "version": stands.version.version,
        "contentHash": stands.version.content_hash,
        "asked": stands.asked,
        "message": stands.sentence,
        "engines": str(stands.own),
        "external": [
            {"provider": one.provider, "state": str(one.state), "requestedAt": one.requested_at}
            for one in stands.external
        ],
        "verifyUrl": f"{base}/api/v1/skills/{slug}/verify?version={stands.version.version}",
        "externalUrl": f"{base}/api/v1/skills/{slug}/external-scans?version={stands.version.version}",
    }
