"""Archives and single files of a version: by digest, cached for long where they cannot change, counted."""

from __future__ import annotations

import base64
import logging
from typing import Final

from django.db import DatabaseError
from django.http import HttpResponse

from marketplace.api.http import SAFE, Asked, Refused, api_view, open_to_all, parameter, tagged
from marketplace.api.lookup import archive_content, named_skill, visible_skill, wanted_version
from marketplace.artifacts.archives import read_member
from marketplace.models import SkillVersion
from marketplace.skills.downloads import count_download_sync
from vskill.environments import WorkerEnv
from vskill.kv.threads import writers

logger = logging.getLogger(__name__)

# A day and not a year: a copy in somebody's cache must not outlive a quarantine by more.
_EXACT: Final = "public, max-age=86400, immutable"
_MOVING: Final = "no-cache"
_TYPES: Final = {"zip": "application/zip", "tar.gz": "application/gzip"}


@api_view(*SAFE)
def download(asked: Asked) -> HttpResponse:
    """Answer clawhub's ``/api/v1/download?slug=&version=`` with a zip."""
    skill = visible_skill(asked.env, parameter(asked, "slug"), owner=parameter(asked, "ownerHandle"))
    version = wanted_version(asked, skill)
    return archive_answer(asked, version, "zip", exact=bool(parameter(asked, "version")))


@api_view(*SAFE)
def archive(asked: Asked) -> HttpResponse:
    """Answer ``/skills/{slug}/download/{version}.zip`` and ``.tar.gz``; the version may be ``latest``."""
    skill = visible_skill(asked.env, asked.arguments["slug"])
    number, kind = _split(asked.arguments["name"])
    version = wanted_version(asked, skill, "" if number == "latest" else number)
    return archive_answer(asked, version, kind, exact=number != "latest")


@api_view(*SAFE)
def file(asked: Asked) -> HttpResponse:
    """Answer ``/api/v1/skills/{slug}/file?path=&version=`` with the bytes of one file, never as anything that runs."""
    skill = named_skill(asked)
    version = wanted_version(asked, skill)
    line = version.file(parameter(asked, "path"))
    if line is None:
        raise Refused(404, "File not found")
    content = read_member(archive_content(asked.env, version.zip_sha256), line["path"])
    answer = open_to_all(HttpResponse(content, content_type=_harmless_type(content)))
    answer["Cache-Control"] = _EXACT if parameter(asked, "version") else _MOVING
    answer["Content-Security-Policy"] = "default-src 'none'; sandbox"
    answer["X-Content-Type-Options"] = "nosniff"
    _warn(answer, version)
    return tagged(asked, answer, line["sha256"])


def archive_answer(asked: Asked, version: SkillVersion, kind: str, *, exact: bool) -> HttpResponse:
    """Return an archive with its digest, and count the download unless the client has it already or asks for less."""
    digest = version.zip_sha256 if kind == "zip" else version.tar_sha256
    answer = open_to_all(HttpResponse(archive_content(asked.env, digest), content_type=_TYPES[kind]))
    in_base64 = base64.b64encode(bytes.fromhex(digest)).decode()
    answer["Digest"] = f"sha-256={in_base64}"
    answer["Repr-Digest"] = f"sha-256=:{in_base64}:"
    answer["X-Checksum-SHA256"] = digest
    answer["Cache-Control"] = _EXACT if exact else _MOVING
    answer["Content-Disposition"] = f'attachment; filename="{version.skill.slug}-{version.version}.{kind}"'
    _warn(answer, version)
    answered = tagged(asked, answer, digest)
    if asked.request.method == "GET" and answered is answer and "X-Skills-Update-Check" not in asked.request.headers:
        _count(asked.env, version)
    return answered


def _split(name: str) -> tuple[str, str]:
    for kind in _TYPES:
        if name.endswith(f".{kind}"):
            return name.removesuffix(f".{kind}"), kind
    raise Refused(404, "An archive ends in .zip or .tar.gz.")


def _harmless_type(content: bytes) -> str:
    try:
        content.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain; charset=utf-8"


def _warn(answer: HttpResponse, version: SkillVersion) -> None:
    if version.yanked_at is None:
        return
    # A reason is free text; a header is one line of ASCII.
    reason = "".join(c if " " <= c <= "~" and c not in '"\\' else "?" for c in version.yank_reason)[:200]
    answer["Warning"] = f'299 - "This version was yanked: {reason}"'
    answer["X-Vskill-Yanked"] = reason or "yanked"


def _count(env: WorkerEnv, version: SkillVersion) -> None:
    skill_id, number = version.skill_id, version.version

    def count() -> None:
        try:
            count_download_sync(env, skill_id, number)
        except DatabaseError as error:
            # The archive is on its way; a counter that could not be raised is no reason to refuse it.
            logger.warning("a download of skill %s, version %s was not counted: %s", skill_id, number, error)

    # On a writing thread, so that waiting for a writer's lock does not hold up readers.
    writers.submit(count)
