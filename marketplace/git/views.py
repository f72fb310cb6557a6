"""Read-only git over HTTP below ``/git/``: what is published and nothing else, and nothing can be pushed."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Final

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse

from marketplace.addresses import catalogue_name
from marketplace.api.files import count_download
from marketplace.api.http import SAFE, ApiCall, ApiError, api_view
from marketplace.api.lookup import exact_version, visible_skill
from marketplace.git.archive_trees import UnfitForGit
from marketplace.git.offers import NOTHING_OFFERED, collection_plugins, publisher_plugins
from marketplace.git.packets import MalformedRequest
from marketplace.git.packs import pack
from marketplace.git.protocol import SERVICE, Fetch, ListRefs, advertisement, asked_version, read_request, refusal
from marketplace.git.repositories import (
    Commit,
    Repository,
    plan,
    shared_repository,
    skill_repository,
)
from marketplace.skill_sets.reading import NOTHING_INSTALLED
from marketplace.skills.handles import present_handle, short_handle
from vskill.accounts.access import asks_for
from vskill.accounts.roles import Action
from vskill.environments import WorkerEnv
from vskill.rate_limits.kinds import Kind
from vskill.visitors.reads import list_reads, part_reads

# Of a request, unpacked: a client with a long history of another repository names commits of it.
_MOST_OF_A_REQUEST: Final = 256 * 1024


@api_view(*SAFE, kind=Kind.DOWNLOADS, reads=list_reads)
def refs(call: ApiCall) -> HttpResponse:
    """Answer ``info/refs?service=git-upload-pack``, with which every client begins."""
    service = call.request.GET.get("service", "")
    if service != SERVICE:
        wanted = "Nothing can be pushed to this registry." if service else "This registry speaks only smart HTTP."
        raise ApiError(403, f"{wanted} Its repositories are read with git clone and git fetch.")
    version = asked_version(call.request.headers.get("Git-Protocol", ""))
    # Read in either version, so that a repository that is not here is told at once.
    found = _repository(call)
    answer = HttpResponse(advertisement(found.ids, version), content_type="application/x-git-upload-pack-advertisement")
    answer["Cache-Control"] = "no-cache"
    return answer


@asks_for(Action.READ)
@api_view("POST", kind=Kind.DOWNLOADS, reads=list_reads)
def upload_pack(call: ApiCall) -> HttpResponseBase:
    """Answer ``git-upload-pack``: the list of refs, or a pack of commits that refs name now."""
    if call.request.headers.get("Content-Type", "") != f"application/x-{SERVICE}-request":
        raise ApiError(415, "This address takes requests of git, for example of git clone.")
    try:
        asked = read_request(_body(call))
    except MalformedRequest as error:
        raise ApiError(400, str(error)) from error
    found = _repository(call)
    if isinstance(asked, ListRefs):
        return _answer(asked.answer(found.ids))
    commits = found.wanted(asked.wants)
    if commits is None:
        return _answer(refusal("upload-pack: not our ref. It may have been withdrawn, or replaced by a newer one."))
    if not asked.sends_pack:
        return _answer(asked.before_pack())
    return _sent(call, asked, commits)


def _repository(call: ApiCall) -> Repository:
    names = call.path_parameters
    try:
        if "owner" not in names:
            return _of_collection(call)
        return _of_skill(call.env, names) if "slug" in names else _of_publisher(call.env, names["owner"])
    except UnfitForGit as error:
        raise ApiError(409, str(error)) from error


def _of_skill(env: WorkerEnv, names: Mapping[str, str]) -> Repository:
    skill = visible_skill(env, names["slug"], owner=names["owner"])
    return skill_repository(env, skill, exact_version(env, skill, ""))


def _of_publisher(env: WorkerEnv, owner: str) -> Repository:
    handle = present_handle(env, owner)
    offered = publisher_plugins(env, handle)
    found = shared_repository(env, catalogue_name(short_handle(handle)), f"Skills of {handle}", offered)
    if found is None:
        raise ApiError(410, NOTHING_OFFERED)
    return found


def _of_collection(call: ApiCall) -> Repository:
    collection, offered = collection_plugins(call)
    name = catalogue_name(collection.slug)
    found = shared_repository(call.env, name, f"The collection {collection.slug}", offered)
    if found is None:
        raise ApiError(410, NOTHING_INSTALLED)
    return found


def _body(call: ApiCall) -> bytes:
    body = call.request.body
    if call.request.headers.get("Content-Encoding", "") == "gzip":
        try:
            with gzip.open(io.BytesIO(body)) as packed:
                body = packed.read(_MOST_OF_A_REQUEST + 1)
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise ApiError(400, "The body is not what its Content-Encoding says.") from error
    if len(body) > _MOST_OF_A_REQUEST:
        raise ApiError(413, "The body is too long. Clone into a new folder, which names nothing that you have.")
    return body


def _answer(content: bytes) -> HttpResponse:
    answer = HttpResponse(content, content_type=f"application/x-{SERVICE}-result")
    answer["Cache-Control"] = "no-cache"
    return answer


def _sent(call: ApiCall, asked: Fetch, commits: list[Commit]) -> HttpResponseBase:
    """Return a response with a pack, which is made while it is sent, and count it for a skill's own repository."""
    parts = asked.framed(pack(call.env, plan(call.env, commits)))
    body = _sent_async(parts) if isinstance(call.request, ASGIRequest) else _sent_sync(parts)
    answer = StreamingHttpResponse(body, content_type=f"application/x-{SERVICE}-result")
    answer["Cache-Control"] = "no-cache"
    if "slug" in call.path_parameters and "owner" in call.path_parameters:
        for one in commits:
            count_download(call, one.plugins[0].version)
    return answer


async def _sent_async(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    while part := await part_reads.run(next, parts, b""):
        yield part


def _sent_sync(parts: Iterator[bytes]) -> Iterator[bytes]:
    while part := part_reads.run_sync(next, parts, b""):
        yield part
