"""The MCP endpoint: JSON-RPC by POST (Streamable HTTP), without sessions and streams."""

from __future__ import annotations

import json
from typing import Any, Final

from django.http import HttpRequest, HttpResponse

from marketplace.api.http import ApiCall, NotJson, allow_any_origin, api_view, json_value
from marketplace.mcp.errors import INVALID_REQUEST, PARSE_ERROR, Refused
from marketplace.mcp.messages import Headers, Said, answered, refusal, unanswered
from marketplace.mcp.versions import UNNAMED, WITH_BATCHES, version_in_header
from vskill.accounts.access import asks_for
from vskill.accounts.roles import Action
from vskill.environments import WorkerEnv
from vskill.rate_limits.clients import client_of
from vskill.rate_limits.kinds import Form, Kind
from vskill.rate_limits.limits_of_clients import limit_of
from vskill.visitors.reads import list_reads

_MOST_MESSAGES: Final = 20
# Characters of the answers to one batch; that to a message can be a file.
_MOST_ANSWERED: Final = 16 * 1024 * 1024


@asks_for(Action.READ)
@api_view("POST", kind=Kind.DOWNLOADS, form=Form.RPC, reads=list_reads)
def endpoint(call: ApiCall) -> HttpResponse:
    """Answer a message of JSON-RPC, or a batch of them; a notification is taken and not answered."""
    try:
        body = json_value(call)
        if isinstance(body, list):
            return _batch(call, body)
        begins = isinstance(body, dict) and body.get("method") == "initialize"
        # Before there is a version, none can be wrong.
        version = "" if begins else version_in_header(call.request)
    except NotJson as error:
        return _sent(refusal(None, Refused(PARSE_ERROR, str(error), 400)))
    except Refused as refused:
        return _sent(refusal(None, refused))
    return _sent(answered(call.env, body, Headers(call.request.headers.get("Mcp-Method", ""), version)))


def _batch(call: ApiCall, messages: list[Any]) -> HttpResponse:
    """Answer each message of a batch; raise ``Refused`` where the version of the request has none."""
    version = version_in_header(call.request)
    if version and version not in WITH_BATCHES:
        raise Refused(INVALID_REQUEST, f"Version {version} of MCP has no batches: send each message alone.", 400)
    if not 1 <= len(messages) <= _MOST_MESSAGES:
        raise Refused(INVALID_REQUEST, f"A batch has 1 to {_MOST_MESSAGES} messages.", 400)
    headers = Headers(version=version or UNNAMED)
    texts, room = [], _MOST_ANSWERED
    for place, message in enumerate(messages):
        if room <= 0 or (place and _is_over_limit(call.env, call.request)):
            why = (
                "The answers to this batch are too long." if room <= 0 else "Too many requests came from your address."
            )
            one = unanswered(message, f"{why} Send this message again, later and alone.")
        else:
            one = answered(call.env, message, headers, batched=True)
        if one.body is not None:
            texts.append(json.dumps(one.body))
            room -= len(texts[-1])
    return _sent_text(f"[{','.join(texts)}]" if texts else "", 200 if texts else 202)


def _is_over_limit(env: WorkerEnv, request: HttpRequest) -> bool:
    """Count one more message of a batch, whose first one was counted as a request."""
    limit = limit_of(env, Kind.DOWNLOADS)
    return limit is not None and limit.count(client_of(request)).refused


def _sent(said: Said) -> HttpResponse:
    return _sent_text("" if said.body is None else json.dumps(said.body), said.status)


def _sent_text(text: str, status: int) -> HttpResponse:
    if not text:
        return HttpResponse(status=status)
    answer = HttpResponse(text, status=status, content_type="application/json")
    answer["Cache-Control"] = "no-store"
    return allow_any_origin(answer)
