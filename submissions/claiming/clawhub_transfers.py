"""The calls of clawhub that hand a skill to another publisher: the offer, the decision about it, and the lists."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from marketplace.api.http import SAFE, json_response
from marketplace.errors import SkillNotFound
from marketplace.models import SkillTransfer
from marketplace.models.ownership import DONE
from marketplace.ownership.transfers import TransferRefused, open_until
from submissions.claiming.by_token import Named, decide_for, offer_for
from submissions.claiming.offers import offers_of
from submissions.source.errors import SourceError
from submissions.uploads.calls import for_account, not_offered_here, token_view
from submissions.uploads.errors import UploadRefused
from submissions.uploads.requests import read_json
from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.needed_scopes import needs
from vskill.access_tokens.scopes import Scope
from vskill.kv.threads import readers, writers
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.worker_context import require_worker_env

# Whose skill it is, is asked where the skill is known.
_ANY: Final = (Scope.PUBLISH, Scope.OPERATE)
_MOST_LISTED: Final = 200


@token_view("POST", Kind.SUBMISSIONS, *_ANY)
async def request_transfer(request: HttpRequest, token: AccessToken, *, slug: str) -> HttpResponse:
    """Offer a skill to a publisher, or hand it over at once where whoever asks may act for both."""
    body = await asyncio.to_thread(read_json, request)
    receiver, message = ("" if body.get(name) is None else body[name] for name in ("toUserHandle", "message"))
    if not isinstance(receiver, str) or not isinstance(message, str) or "\0" in receiver:
        raise UploadRefused(400, "'toUserHandle' and 'message' are texts. Nothing was changed.")
    made = await _changed(offer_for, token, _named(request, slug), receiver, message)
    answer: dict[str, Any] = {
        "ok": True,
        "transferId": str(made.pk),
        "toUserHandle": made.to_handle,
        "toPublisherHandle": made.to_handle,
        "skillSlug": made.skill.slug,
        "transferred": made.state == DONE,
    }
    if made.state != DONE:
        answer["expiresAt"] = _milliseconds(open_until(made))
    return _answered(answer)


@token_view("POST", Kind.SUBMISSIONS, *_ANY)
async def decide(request: HttpRequest, token: AccessToken, *, slug: str, decision: str) -> HttpResponse:
    """Do what the path says, a ``decision``, with the offer of the skill called ``slug`` for the owner of ``token``."""
    decided = await _changed(decide_for, token, _named(request, slug), decision)
    return _answered({"ok": True, "skillSlug": decided.skill.slug})


# csrf_exempt: it takes a token alone, which no page of another site has.
@rated(Kind.READS, Form.TEXT)
@needs(*_ANY)
@csrf_exempt
async def transfers(request: HttpRequest, direction: str) -> HttpResponseBase:
    """List the open offers to the publishers of whoever asks, or those that it made."""
    if request.method not in SAFE:
        return not_offered_here(request, *SAFE)
    return await for_account(request, Kind.READS, _listed, direction=direction)


async def _listed(_request: HttpRequest, token: AccessToken, *, direction: str) -> HttpResponse:
    env = require_worker_env()
    found = await readers.run(offers_of, env, token.user, _MOST_LISTED)
    return _answered({"transfers": [_as_json(one, direction) for one in found[direction]]})


async def _changed(change: Any, token: AccessToken, *arguments: Any) -> SkillTransfer:
    try:
        changed: SkillTransfer = await writers.run(change, require_worker_env(), token, *arguments)
    except SkillNotFound:
        raise UploadRefused(404, "Skill not found") from None
    except (TransferRefused, SourceError) as error:
        raise UploadRefused(409, str(error)) from error
    return changed


def _named(request: HttpRequest, slug: str) -> Named:
    return Named(slug, request.GET.get("ownerHandle", ""))


def _as_json(one: SkillTransfer, direction: str) -> dict[str, Any]:
    ends = ("fromUser", one.from_publisher, one.from_handle)
    if direction == "outgoing":
        ends = ("toUser", one.to_publisher, one.to_handle)
    name, identity, handle = ends
    return {
        "_id": str(one.pk),
        "skill": {"_id": one.skill.slug, "slug": one.skill.slug, "displayName": one.skill.record.name},
        name: {"_id": identity, "handle": handle, "displayName": handle},
        "message": one.reason,
        "requestedAt": _milliseconds(one.created_at),
        "expiresAt": _milliseconds(open_until(one)),
    }


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _answered(body: dict[str, Any]) -> HttpResponse:
    answer = json_response(body)
    answer["Cache-Control"] = "no-store"
    return answer
