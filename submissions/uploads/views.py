"""The calls by which clawhub publishes: one request with all files, or each file ahead and then their list."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any, Final

from django.core import signing
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt

from marketplace.addresses import public_base
from marketplace.api import clawhub
from marketplace.api.http import SAFE, json_response
from submissions.uploads.accept import Taken, found_skill, known, take
from submissions.uploads.calls import for_account, not_offered_here, token_view
from submissions.uploads.errors import UploadRefused
from submissions.uploads.requests import Upload, announced_file, read_upload
from submissions.uploads.stored import stage, staged_contents
from vskill.access_tokens.models import AccessToken
from vskill.access_tokens.needed_scopes import needs
from vskill.access_tokens.scopes import Scope
from vskill.kv.threads import readers, writers
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.worker_context import require_worker_env

_SALT: Final = "submissions.uploads"
_TICKET_SECONDS: Final = 3600


# csrf_exempt: it takes a token alone, which no page of another site has.
@rated(Kind.SUBMISSIONS, Form.TEXT)
@needs(Scope.PUBLISH)
@csrf_exempt
async def skills(request: HttpRequest) -> HttpResponseBase:
    """List published skills, or take the upload of one."""
    if request.method in SAFE:
        listed: HttpResponseBase = await clawhub.skills(request)
        return listed
    if request.method != "POST":
        return not_offered_here(request, *SAFE, "POST")
    return await for_account(request, Kind.SUBMISSIONS, _publish)


async def _publish(request: HttpRequest, token: AccessToken) -> HttpResponse:
    env = require_worker_env()
    upload = await asyncio.to_thread(read_upload, request)
    taken = await readers.run(known, env, token.user, upload.wish, upload.files)
    if taken is None:
        contents = upload.contents
        if contents is None:
            contents = await readers.run(staged_contents, env, token.user_id, upload.files)
        described = await found_skill(contents)
        taken = await writers.run(take, env, token.user, upload.wish, upload.files, contents, described)
    return _answer(request, upload, taken)


def _answer(request: HttpRequest, upload: Upload, taken: Taken) -> HttpResponse:
    address = reverse("submissions:submission", args=[taken.submission_id])
    body: dict[str, Any] = {
        "ok": True,
        "skillId": taken.slug,
        "versionId": taken.submission_id,
        "attemptId": taken.submission_id,
        "slug": taken.slug,
        "version": taken.version,
        "publicationStatus": "published" if taken.is_published else "pending",
        "contentHash": upload.files.digest,
        "statusUrl": f"{public_base(request, require_worker_env())}{address}",
    }
    answer = json_response(body, 200 if taken.is_published else 202)
    answer["Cache-Control"] = "no-store"
    return answer


@token_view("POST", Kind.UPLOADS, Scope.PUBLISH)
async def upload_url(request: HttpRequest, token: AccessToken) -> HttpResponse:
    """Say where one file is to be uploaded: an address that is good for this account, file and hour alone."""
    env = require_worker_env()
    file = await asyncio.to_thread(announced_file, request)
    ticket = signing.dumps([env.name, token.user_id, file.sha256, file.size], salt=_SALT)
    path = reverse("submissions:upload-file", args=[ticket])
    answer = json_response({"uploadUrl": f"{public_base(request, env)}{path}", "uploadTicket": ticket})
    answer["Cache-Control"] = "no-store"
    return answer


@token_view("POST", Kind.UPLOADS, Scope.PUBLISH)
async def upload_file(request: HttpRequest, token: AccessToken, ticket: str) -> HttpResponse:
    """Take the bytes of one file, which have to be those that were announced."""
    env = require_worker_env()
    try:
        namespace, account, sha256, size = signing.loads(ticket, salt=_SALT, max_age=_TICKET_SECONDS)
    except (signing.BadSignature, ValueError, TypeError):
        raise UploadRefused(403, "This address for an upload is wrong or older than an hour. Publish again.") from None
    if (namespace, account) != (env.name, token.user_id):
        raise UploadRefused(403, "This address for an upload was made for another account. Nothing was kept.")
    content = await asyncio.to_thread(request.read, size + 1)
    if len(content) != size or await asyncio.to_thread(_sha256, content) != sha256:
        raise UploadRefused(
            400, "These are not the bytes that were announced: size or SHA-256 differ. Nothing was kept."
        )
    digest = await writers.run(stage, env, token.user_id, content)
    answer = json_response({"storageId": digest})
    answer["Cache-Control"] = "no-store"
    return answer


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
