"""The calls of clawhub that withdraw a skill or one version, and bring it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from marketplace.api import clawhub
from marketplace.api.http import SAFE, ApiError, json_response
from marketplace.api.lookup import visible_skill
from marketplace.catalog import find_skill_sync
from marketplace.skills.handles import is_named
from submissions.uploads.acting import by_token
from submissions.uploads.calls import for_account, not_offered_here, token_view
from submissions.uploads.errors import UploadRefused
from submissions.uploads.owners import belongs_to
from submissions.uploads.requests import read_json
from submissions.uploads.withdraw import bring_back, withdraw
from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.needed_scopes import needs
from vskill.access_tokens.scopes import Scope
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.worker_context import require_worker_env

# Whoever may do it for which skill is asked where the skill is known.
_ANY: Final = (Scope.PUBLISH, Scope.OPERATE)


# csrf_exempt: it takes a token alone, which no page of another site has.
@rated(Kind.SUBMISSIONS, Form.TEXT)
@needs(*_ANY)
@csrf_exempt
async def skill(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Describe a skill, or withdraw it."""
    if request.method in SAFE:
        described: HttpResponseBase = await clawhub.detail(request, slug=slug)
        return described
    if request.method != "DELETE":
        return not_offered_here(request, *SAFE, "DELETE")
    return await for_account(request, Kind.SUBMISSIONS, _changing(withdraw), slug=slug)


@rated(Kind.SUBMISSIONS, Form.TEXT)
@needs(*_ANY)
@csrf_exempt
async def version(request: HttpRequest, slug: str, version: str) -> HttpResponseBase:
    """Describe a version, or withdraw it."""
    if request.method in SAFE:
        described: HttpResponseBase = await clawhub.version(request, slug=slug, version=version)
        return described
    if request.method != "DELETE":
        return not_offered_here(request, *SAFE, "DELETE")
    return await for_account(request, Kind.SUBMISSIONS, _changing(withdraw), slug=slug, version=version)


@token_view("POST", Kind.SUBMISSIONS, *_ANY)
async def undelete(request: HttpRequest, token: AccessToken, **parts: str) -> HttpResponse:
    """Bring a skill back, or one version of it."""
    return await _changing(bring_back)(request, token, **parts)


def _changing(change: Callable[..., None]) -> Callable[..., Coroutine[Any, Any, HttpResponse]]:
    async def view(request: HttpRequest, token: AccessToken, *, slug: str, version: str = "") -> HttpResponse:
        env = require_worker_env()
        body = await asyncio.to_thread(read_json, request)
        reason, owner = body.get("reason") or "", body.get("ownerHandle") or ""
        if not isinstance(reason, str) or not isinstance(owner, str):
            raise UploadRefused(400, "'reason' and 'ownerHandle' are texts. Nothing was changed.")
        await writers.run(_change, change, env, token, slug, version, reason, owner)
        return json_response({"ok": True})

    return view


def _change(
    change: Callable[..., None],
    env: WorkerEnv,
    token: AccessToken,
    slug: str,
    version: str,
    reason: str,
    owner: str,
) -> None:
    found = find_skill_sync(env, slug.lower(), every=True)
    # Its own publisher may, also where it is shown to others alone, or the token is for nothing but publishing.
    own = found is not None and belongs_to(env, token.user, found) and (not owner or is_named(env, found, owner))
    try:
        present = found if found is not None and own else visible_skill(env, slug, owner=owner, hidden=True)
    except ApiError as error:
        raise UploadRefused(error.status, str(error)) from error
    change(env, by_token(env, token), present.slug, version, reason=reason)
