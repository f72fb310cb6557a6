"""The MCP endpoint: JSON-RPC by POST, without sessions, in the protocol's version of July 2026."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Substr
from django.http import HttpResponse, JsonResponse

from marketplace.api.http import ApiCall, ApiError, allow_any_origin, api_view, json_body
from marketplace.api.lookup import archive_content, exact_version, visible_skill
from marketplace.api.trust import said_of
from marketplace.artifacts.archives import MANIFEST_NAME, read_member
from marketplace.catalog import list_skills
from marketplace.errors import InvalidListing, MarketplaceError
from marketplace.mcp.entries import entry_of
from marketplace.models import SkillEntry, SkillVersion
from marketplace.skills.resource_uris import HEAD_CHARACTERS, read_uri
from marketplace.skills.visibility import fetchable_versions
from vskill.accounts.access import asks_for
from vskill.accounts.roles import Action
from vskill.environments import WorkerEnv
from vskill.rate_limits.kinds import Form, Kind
from vskill.visitors.reads import list_reads

PROTOCOL: Final = "2026-07-28"
EXTENSION: Final = "io.modelcontextprotocol/skills"
_PAGE: Final = 50
_INVALID_REQUEST: Final = -32600
_NO_METHOD: Final = -32601
_INVALID_PARAMS: Final = -32602
# What a client may keep: nothing, because a withdrawal counts at once.
_UNCACHED: Final = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}


class _Refused(MarketplaceError):
    """A message is answered with an error of JSON-RPC, which has a ``number``."""

    code = "mcp_refused"

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


@asks_for(Action.READ)
@api_view("POST", kind=Kind.DOWNLOADS, form=Form.RPC, reads=list_reads)
def endpoint(call: ApiCall) -> HttpResponse:
    """Answer one message of JSON-RPC; a notification is taken and not answered."""
    message = json_body(call)
    known, method, params = message.get("id"), message.get("method"), message.get("params", {})
    strange = isinstance(known, bool) or not isinstance(known, (str, int, type(None)))
    if strange or not isinstance(method, str) or not isinstance(params, dict):
        return _answered(None, {"error": {"code": _INVALID_REQUEST, "message": "This is no request of MCP."}}, 400)
    if call.request.headers.get("Mcp-Method", method) != method:
        refusal = {"code": _INVALID_REQUEST, "message": "The header Mcp-Method names another method than the body."}
        return _answered(known, {"error": refusal}, 400)
    if known is None:
        return HttpResponse(status=202)
    answer = _METHODS.get(method)
    if answer is None:
        refusal = {"code": _NO_METHOD, "message": f"There is no such method here. There are: {', '.join(_METHODS)}."}
        return _answered(known, {"error": refusal}, 404)
    try:
        return _answered(known, {"result": {**_UNCACHED, **answer(call.env, params)}})
    except _Refused as refused:
        return _answered(known, {"error": {"code": refused.number, "message": str(refused)}})
    except (ApiError, InvalidListing) as error:
        return _answered(known, {"error": {"code": _INVALID_PARAMS, "message": str(error)}})


def _answered(known: str | int | None, body: Mapping[str, Any], status: int = 200) -> HttpResponse:
    answer = JsonResponse({"jsonrpc": "2.0", "id": known, **body}, status=status)
    answer["Cache-Control"] = "no-store"
    return allow_any_origin(answer)


def _discover(_env: WorkerEnv, _params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "supportedVersions": [PROTOCOL],
        "capabilities": {"resources": {}, "extensions": {EXTENSION: {}}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "vskill", "version": settings.VSKILL_VERSION}},
    }


def _list(env: WorkerEnv, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a page of skills, newest first, without those that have findings."""
    cursor = params.get("cursor")
    if not isinstance(cursor, (str, type(None))):
        raise _Refused(_INVALID_PARAMS, "A cursor is a text.")
    page = list_skills(env, sort="newest", limit=_PAGE, cursor=cursor)
    skills = {skill.pk: skill for skill in page.skills}
    versions = _with_heads(env, SkillVersion.objects.using(env.database).filter(skill_id__in=skills))
    latest = {one.skill_id: one for one in versions.filter(version=F("skill__latest_version"))}
    shown = [
        entry
        for skill in page.skills
        if (version := latest.get(skill.pk)) is not None
        and not said_of(version).suspicious
        and (entry := entry_of(skill, version, version.head)) is not None
    ]
    return {"skills": shown, **({"nextCursor": page.next_cursor} if page.next_cursor else {})}


def _get(env: WorkerEnv, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the skill with a URI; its description of findings is in ``_meta``."""
    uri = _uri(params)
    skill, version = _named(env, uri)
    found = _with_heads(env, SkillVersion.objects.using(env.database).filter(pk=version.pk)).first()
    entry = None if found is None else entry_of(skill, found, found.head)
    if entry is None or entry["uri"] != uri:
        raise _Refused(_INVALID_PARAMS, "There is no skill with this URI here.")
    return {"skill": entry}


def _read(env: WorkerEnv, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return one file of the latest version, as text where it is text."""
    uri = _uri(params)
    skill, version = _named(env, uri)
    named = read_uri(uri)
    inside = "" if named is None else named[1]
    if version.name != skill.slug:
        # The name that the skill gives itself comes before its files.
        inside = inside.partition("/")[2]
    line = version.file(inside)
    if line is None:
        raise _Refused(_INVALID_PARAMS, "There is no such file in this skill.")
    content = read_member(archive_content(env, version.zip_sha256), line["path"])
    shown: dict[str, Any] = {"uri": uri}
    try:
        shown["text"] = content.decode()
        shown["mimeType"] = "text/markdown" if line["path"] == MANIFEST_NAME else "text/plain"
    except UnicodeDecodeError:
        shown["blob"] = base64.b64encode(content).decode()
        shown["mimeType"] = "application/octet-stream"
    return {"contents": [shown]}


_METHODS: Final[dict[str, Callable[[WorkerEnv, Mapping[str, Any]], dict[str, Any]]]] = {
    "server/discover": _discover,
    "skills/list": _list,
    "skills/get": _get,
    "resources/read": _read,
}


def _uri(params: Mapping[str, Any]) -> str:
    uri = params.get("uri")
    if not isinstance(uri, str) or len(uri) > 2048 or "\0" in uri:
        raise _Refused(_INVALID_PARAMS, "A URI is a text of at most 2,048 characters.")
    return uri


def _named(env: WorkerEnv, uri: str) -> tuple[SkillEntry, SkillVersion]:
    named = read_uri(uri)
    if named is None:
        raise _Refused(_INVALID_PARAMS, "URIs here begin with skill:// and the name of a skill.")
    skill = visible_skill(env, named[0])
    return skill, exact_version(env, skill, "")


def _with_heads(env: WorkerEnv, versions: Any) -> Any:
    """Return the versions that can be fetched, each with the beginning of its SKILL.md as ``head``."""
    found = fetchable_versions(versions.filter(namespace=env.name))
    return found.annotate(head=Substr("skill_md", 1, HEAD_CHARACTERS)).defer("skill_md", "findings", "contract")
