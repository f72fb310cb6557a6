"""``clawhub scan``: ask for another scan of a published version, and follow it with its place in the queue."""

from __future__ import annotations

import re
import time
from typing import Any, Final

from django.http import HttpResponse

from marketplace.api.http import SAFE, ApiCall, ApiError, api_view, json_body, json_response, text_response
from marketplace.api.lookup import visible_skill
from marketplace.catalog import find_version_sync
from marketplace.models import SkillVersion
from marketplace.skills.newest_scan import newest_scan
from marketplace.skills.visibility import is_told
from submissions import messages
from submissions.external_scans.errors import NothingToScan, TooManyScans
from submissions.scan_again.ask import ask_again
from submissions.scan_again.clawhub_report import report_answer
from submissions.scan_again.reports import report_of_version
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict
from vskill.rate_limits.kinds import Kind

# The number of the version, and when it was asked for: everything else is read anew.
_SCAN: Final = re.compile(r"scan-(?P<version>\d{1,18})-(?P<asked>\d{1,15})", re.ASCII)
_NOTE: Final = "publishers take turns, so others may still go before it"
_NO_SCAN: Final = "There is no such scan. Run clawhub scan again."


@api_view("POST", kind=Kind.SUBMISSIONS)
def scan(call: ApiCall) -> HttpResponse:
    """Ask for another scan of ``source``, a published skill; answer with the id by which the client asks for it."""
    body = json_body(call)
    source = body.get("source")
    fields = source if isinstance(source, dict) else {}
    if fields.get("kind") != "published":
        raise ApiError(400, "What is scanned here is published: {'source': {'kind': 'published', 'slug': ...}}.")
    slug, owner, version = (_text(fields, name) for name in ("slug", "ownerHandle", "version"))
    skill = visible_skill(call.env, slug, owner=owner)
    try:
        stands = ask_again(call.env, skill.slug, version, by="clawhub")
    except NothingToScan as missing:
        raise ApiError(404, str(missing)) from missing
    except TooManyScans as refused:
        later = text_response(str(refused), 429)
        later["Retry-After"] = str(refused.retry_after)
        return later
    except VersionConflict as error:
        raise ApiError(503, "Many ask for this at the same moment. Nothing was asked: try again.") from error
    update = body.get("update") is True
    scan_id = f"scan-{stands.version.pk}-{int(time.time() * 1000)}"
    answer = json_response({**_standing(call.env, stands.version, scan_id), "update": update}, 202)
    answer["Cache-Control"] = "no-store"
    return answer


@api_view(*SAFE)
def scan_status(call: ApiCall) -> HttpResponse:
    """Say where a scan stands: its place in the queue, or what it found."""
    found, asked = _scanned(call)
    body = {**_standing(call.env, found, call.path_parameters["scan_id"]), "update": False}
    body |= {"createdAt": asked, "updatedAt": asked}
    if body["status"] in ("succeeded", "failed"):
        report = report_of_version(call.env, found)
        scanned_at = report.times[1]
        body |= {"completedAt": scanned_at, "updatedAt": max(asked, scanned_at)}
        body |= {"report": report.by_part, "artifact": report.artifact}
    return json_response(body)


@api_view(*SAFE)
def scan_download(call: ApiCall) -> HttpResponse:
    """Return the report of a scan that was asked for, once it has ended."""
    found, asked = _scanned(call)
    scan_id = call.path_parameters["scan_id"]
    if _standing(call.env, found, scan_id)["status"] in ("queued", "running"):
        raise ApiError(409, "This scan has not ended yet. Its report is there once it has.")
    return report_answer(report_of_version(call.env, found, scan_id, asked))


def _scanned(call: ApiCall) -> tuple[SkillVersion, int]:
    """Return the version of the scan that the path names, and when it was asked for; raise ``ApiError``."""
    named = _SCAN.fullmatch(call.path_parameters["scan_id"])
    rows = SkillVersion.objects.using(call.env.database).filter(namespace=call.env.name)
    row = rows.select_related("skill").filter(pk=int(named["version"])).first() if named is not None else None
    if named is None or row is None or not is_told(row.skill):
        raise ApiError(404, _NO_SCAN)
    # Withdrawn meanwhile, it is told as everywhere.
    skill = visible_skill(call.env, row.skill.slug)
    found = find_version_sync(call.env, skill, row.version)
    if found is None:
        raise ApiError(410, f"Version {row.version} of {skill.slug} was withdrawn.")
    return found, int(named["asked"])


def _standing(env: WorkerEnv, version: SkillVersion, scan_id: str) -> dict[str, Any]:
    """Return where the scan of a version by our own engines stands; what scanners outside say comes when it comes."""
    body: dict[str, Any] = {"ok": True, "scanId": scan_id, "sourceKind": "published"}
    subject = str(version.pk)
    waits = messages.rescan_standing(env, version.pk)
    if waits is messages.Standing.PARKED:
        return {**body, "status": "failed", "lastError": "The engines could not read it, also when they tried again."}
    if waits is messages.Standing.NONE:
        return {**body, "status": "succeeded", "writtenBack": newest_scan(version).again}
    ahead = messages.count_ahead(env, subject) if waits is messages.Standing.WAITING else None
    queue = {
        "queuedAhead": ahead or 0,
        "position": None if ahead is None else ahead + 1,
        "running": messages.count_leased(env),
        "note": _NOTE,
    }
    status = "queued" if waits is messages.Standing.WAITING else "running"
    return {**body, "status": status, "queue": queue}


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name) or ""
    if not isinstance(value, str) or len(value) > 200 or "\0" in value:
        raise ApiError(400, f"'{name}' is no text that names anything. Nothing was asked.")
    return value
