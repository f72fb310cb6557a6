"""Archives and single files of a version, with digests and cache lifetimes; downloads of archives are counted."""

from __future__ import annotations

import base64
import logging
from typing import Final
from urllib.parse import quote

from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse

from marketplace.addresses import LISTED
from marketplace.api.http import SAFE, ApiCall, ApiError, allow_any_origin, api_view, parameter, with_etag
from marketplace.api.lookup import archive_content, named_skill, requested_version, visible_skill
from marketplace.api.provenance import SIGNATURES, signature_response
from marketplace.artifacts.stored import CHUNK_BYTES, chunks, chunks_async, read_file
from marketplace.models import SkillVersion
from marketplace.skills.downloads import count_download_sync
from marketplace.skills.near_names import near_paths, with_near
from vskill.kv.threads import DatabaseThreads
from vskill.rate_limits.clients import client_of
from vskill.rate_limits.kinds import Kind

logger = logging.getLogger(__name__)

# A day and not a year: a cached copy must not outlive a quarantine by more than that.
_EXACT: Final = "public, max-age=86400, immutable"
_MOVING: Final = "no-cache"
# On a thread of its own: waiting for a write lock would hold up a page, and many downloads would hold up intake.
_counters: Final = DatabaseThreads("download-count", lambda: 1)
# The limits of proxies are for all headers of an answer together.
_LONGEST_REASON: Final = 200
_LONGEST_IN_HEADER: Final = 600
_TYPES: Final = {"zip": "application/zip", "tar.gz": "application/gzip"}


@api_view(*SAFE, kind=Kind.DOWNLOADS)
def download(call: ApiCall) -> HttpResponseBase:
    """Answer clawhub's ``/api/v1/download?slug=&version=`` with a zip archive."""
    skill = visible_skill(call.env, parameter(call, "slug"), owner=parameter(call, "ownerHandle"))
    version = requested_version(call, skill)
    return archive_response(call, version, "zip", exact=bool(parameter(call, "version")))


@api_view(*SAFE, kind=Kind.DOWNLOADS)
def archive(call: ApiCall) -> HttpResponseBase:
    """Answer ``/skills/{slug}/download/{version}.zip`` and ``.tar.gz``, and what is signed of it beside them.

    The version may be ``latest``. ``.model.sig`` is the signature of its files, ``.intoto.json`` its statement.
    """
    skill = visible_skill(call.env, call.path_parameters["slug"])
    number, kind = _split(call.path_parameters["name"])
    version = requested_version(call, skill, "" if number == "latest" else number)
    if kind in SIGNATURES:
        return signature_response(call, version, kind)
    return archive_response(call, version, kind, exact=number != "latest")


@api_view(*SAFE, kind=Kind.DOWNLOADS)
def file(call: ApiCall) -> HttpResponseBase:
    """Answer ``/api/v1/skills/{slug}/file?path=&version=`` with one file, as a type that no browser runs."""
    skill = named_skill(call)
    version = requested_version(call, skill)
    line = version.file(parameter(call, "path"))
    if line is None:
        near = near_paths((one["path"] for one in version.manifest), parameter(call, "path"))
        raise ApiError(404, with_near("File not found", near, what="files"))
    asynchronous = isinstance(call.request, ASGIRequest)
    answer = allow_any_origin(
        read_file(call.env, version.zip_sha256, line["path"], _inert_type, asynchronous=asynchronous)
    )
    answer["Cache-Control"] = _EXACT if parameter(call, "version") else _MOVING
    answer["Content-Security-Policy"] = "default-src 'none'; sandbox"
    answer["X-Content-Type-Options"] = "nosniff"
    _warn(answer, version)
    return with_etag(call.request, answer, line["sha256"])


def archive_response(call: ApiCall, version: SkillVersion, kind: str, *, exact: bool) -> HttpResponseBase:
    """Return the archive of ``version`` with its digest, and count the download.

    ``kind`` is ``zip`` or ``tar.gz``. ``exact`` says that the address names the version, so that the response can be
    cached; an address of the latest version cannot. Nothing is counted for HEAD, for a part of an archive, for a client
    that has it already or was counted today, and for one that only looks at what a list offers or checks for updates.
    """
    digest = version.zip_sha256 if kind == "zip" else version.tar_sha256
    size = version.zip_size if kind == "zip" else version.tar_size
    answer = allow_any_origin(_body(call, digest, size, _TYPES[kind]))
    in_base64 = base64.b64encode(bytes.fromhex(digest)).decode()
    answer["Digest"] = f"sha-256={in_base64}"
    answer["Repr-Digest"] = f"sha-256=:{in_base64}:"
    answer["X-Checksum-SHA256"] = digest
    answer["Cache-Control"] = _EXACT if exact else _MOVING
    answer["Content-Disposition"] = f'attachment; filename="{version.skill.slug}-{version.version}.{kind}"'
    _warn(answer, version)
    answered = with_etag(call.request, answer, digest)
    if call.request.method == "GET" and answered is answer and not _only_looks(call):
        count_download(call, version)
    return answered


def _only_looks(call: ApiCall) -> bool:
    asked = call.request.headers
    return "X-Skills-Update-Check" in asked or "Range" in asked or LISTED in call.request.GET


def _body(call: ApiCall, digest: str, size: int, content_type: str) -> HttpResponseBase:
    """Return a response with an archive, which is read while it is sent if it has more than one chunk."""
    if call.request.method == "HEAD":
        return HttpResponse(content_type=content_type, headers={"Content-Length": str(size)})
    if size <= CHUNK_BYTES:
        return HttpResponse(archive_content(call.env, digest), content_type=content_type)
    # Under WSGI, Django would collect an asynchronous body in memory first.
    read = chunks_async if isinstance(call.request, ASGIRequest) else chunks
    return StreamingHttpResponse(
        read(call.env, digest, size), content_type=content_type, headers={"Content-Length": str(size)}
    )


def _split(name: str) -> tuple[str, str]:
    for kind in (*_TYPES, *SIGNATURES):
        if name.endswith(f".{kind}"):
            return name.removesuffix(f".{kind}"), kind
    raise ApiError(404, "An archive ends in .zip or .tar.gz.")


def _inert_type(content: bytes) -> str:
    try:
        content.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain; charset=utf-8"


def _warn(answer: HttpResponseBase, version: SkillVersion) -> None:
    """Name a yank and a flag in headers, which reach whoever holds a link to the version."""
    warnings = []
    if version.flag_reason:
        answer["X-Vskill-Flagged"] = reason = _in_header(version.flag_reason)
        warnings.append(f'299 - "This version was flagged: {reason}"')
    if version.yanked_at is not None:
        reason = _in_header(version.yank_reason)
        answer["X-Vskill-Yanked"] = reason or "yanked"
        warnings.append(f'299 - "This version was yanked: {reason}"')
    if warnings:
        answer["Warning"] = ", ".join(warnings)


def _in_header(text: str) -> str:
    """Return a reason, which is free text, as one line of ASCII: any other character is percent-encoded UTF-8."""
    written = ""
    for character in text[:_LONGEST_REASON]:
        plain = " " <= character <= "~" and character not in '"\\%'
        more = character if plain else quote(character, safe="", errors="replace")
        if len(written) + len(more) > _LONGEST_IN_HEADER:
            break
        written += more
    return written


def count_download(call: ApiCall, version: SkillVersion) -> None:
    """Count a download on a thread of its own; one that cannot be counted is logged, and its client is served."""
    env, skill_id, number, client = call.env, version.skill_id, version.version, client_of(call.request)

    def count() -> None:
        try:
            count_download_sync(env, skill_id, number, client)
        except DatabaseError as error:
            # The client gets its archive either way, and a lost count is no reason to fail.
            logger.warning("a download of skill %s, version %s was not counted: %s", skill_id, number, error)

    _counters.submit(count)
