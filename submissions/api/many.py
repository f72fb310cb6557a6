"""The API of what is too long for one answer: the skills of a repository page by page, and jobs of many skills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from submissions.api.answers import (
    BadRequest,
    body_object,
    error_answer,
    errors_answered,
    limit_of,
    not_allowed,
    read_from_anywhere,
    repository_of,
    takes_only,
    texts_of,
)
from submissions.chosen_audiences import audience_to_submit
from submissions.discovery import Discovery, discover, folder_of
from submissions.job_presentation import job_as_json, progress_as_json, started_as_json
from submissions.jobs.progress import STANDINGS, progress_of
from submissions.jobs.records import JobNotFound, get_job, may_stop
from submissions.jobs.work import start_job, stop_job
from submissions.listings import PAGE, Choice, ListingExpired, keep_listing, page_of
from submissions.presentation import found_as_json
from submissions.source_audiences import refuse_unseen
from submissions.submitter import submitter_of
from submissions.told import told_listing, told_skills
from vskill.kv.cursors import encode_cursor
from vskill.kv.keyset import binding_of, bound_position, no_cursor
from vskill.kv.threads import writers
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.visitors.reads import intake_reads, page_reads
from vskill.worker_context import require_worker_env

MAX_PAGE: Final = 200
LONGEST_WORDS: Final = 200


@dataclass(frozen=True)
class _Pages:
    """The pages of a list that never changes, by the numbers of its rows; ``binding`` tells it from other lists."""

    binding: str
    start: int
    limit: int

    @classmethod
    def asked(cls, request: HttpRequest, *parts: str) -> _Pages:
        """Return the page that a call asks for of the list that ``parts`` define; raises what answers 400."""
        binding = binding_of(require_worker_env().name, *parts)
        limit, cursor = limit_of(request, PAGE, MAX_PAGE), request.GET.get("cursor", "")
        start = bound_position(binding, cursor)[:1] if cursor else [0]
        if not start or type(start[0]) is not int:
            raise no_cursor()
        return cls(binding, start[0], limit)

    def cursor(self, following: int | None) -> str | None:
        """Return the cursor of the page that begins at the number ``following``, ``None`` where there is none."""
        return None if following is None else encode_cursor(self.binding, following)


# csrf_exempt, here and below: the API reads no cookie, so a browser cannot be made to submit in somebody's name.
@rated(Kind.SUBMISSIONS, Form.JSON)
@csrf_exempt
async def listings(request: HttpRequest) -> HttpResponse:
    """List the skills of a repository, and keep the list for the calls that read its next pages."""
    return await _list_repository(request) if request.method == "POST" else not_allowed(request, "POST")


@errors_answered
async def _list_repository(request: HttpRequest) -> JsonResponse:
    env = require_worker_env()
    texts = texts_of(body_object(request), "repoUrl", "folder")
    await refuse_unseen(env, repository_of(texts))
    discovery = await discover(env, repository_of(texts), path=texts["folder"])
    listing_id = await keep_listing(env, discovery)
    return await _listing_page(listing_id, discovery, Choice(), request, status=201)


@rated(Kind.READS, Form.JSON)
@csrf_exempt
@read_from_anywhere
async def listing(request: HttpRequest, listing_id: str) -> HttpResponse:
    """Return a page of a list of skills; ``?folder=`` and ``?q=`` narrow it down."""
    return (
        await _read_listing(request, listing_id)
        if request.method in ("GET", "HEAD")
        else not_allowed(request, "GET, HEAD")
    )


@errors_answered
async def _read_listing(request: HttpRequest, listing_id: str) -> JsonResponse:
    takes_only(request, "cursor", "limit", "folder", "q")
    try:
        discovery = await told_listing(require_worker_env(), listing_id)
    except ListingExpired as error:
        return error_answer(error, 404)
    words = request.GET.get("q", "")
    if len(words) > LONGEST_WORDS:
        raise BadRequest(f"'q' has {len(words)} characters. It can have {LONGEST_WORDS}. Nothing was read.")
    choice = Choice(folder_of(request.GET.get("folder", "")), words)
    return await _listing_page(listing_id, discovery, choice, request)


async def _listing_page(
    listing_id: str, discovery: Discovery, choice: Choice, request: HttpRequest, *, status: int = 200
) -> JsonResponse:
    asked = _Pages.asked(request, "listing", listing_id, choice.folder, choice.words)
    page = await intake_reads.run(page_of, discovery, choice, start=asked.start, size=asked.limit)
    skills = await intake_reads.run(told_skills, require_worker_env(), page.skills)
    body = {
        "id": listing_id,
        "repoUrl": discovery.repo_url,
        "commitSha": discovery.commit_sha,
        "sourceRef": discovery.ref or None,
        "total": len(discovery.skills),
        "matching": page.matching,
        "folders": [{"path": path, "skills": count} for path, count in page.folders],
        "skills": [found_as_json(one, named=discovery.named) for one in skills],
        "nextCursor": asked.cursor(page.following),
    }
    return JsonResponse(body, status=status)


@rated(Kind.SUBMISSIONS, Form.JSON)
@csrf_exempt
async def jobs(request: HttpRequest) -> HttpResponse:
    """Submit the skills of a repository, or of a folder in it, as one job."""
    return await _start(request) if request.method == "POST" else not_allowed(request, "POST")


@errors_answered
async def _start(request: HttpRequest) -> JsonResponse:
    env = require_worker_env()
    texts = texts_of(body_object(request), "repoUrl", "folder", "audience")
    await refuse_unseen(env, repository_of(texts))
    audience = await audience_to_submit(env, texts["repoUrl"], texts["audience"])
    discovery = await discover(env, repository_of(texts), path=texts["folder"])
    by: Any = {"source": "api", "actor": "api", "submitter": await submitter_of(request), "audience": audience}
    job = await writers.run(start_job, env, discovery, **by)
    return JsonResponse(await page_reads.run(started_as_json, env, job), status=202)


@rated(Kind.READS, Form.JSON)
@csrf_exempt
@read_from_anywhere
async def job(request: HttpRequest, job_id: str) -> HttpResponse:
    """Return how far a job is, with a page of its skills; ``?standing=`` narrows the page down."""
    return await _look(request, job_id) if request.method in ("GET", "HEAD") else not_allowed(request, "GET, HEAD")


@errors_answered
async def _look(request: HttpRequest, job_id: str) -> JsonResponse:
    env = require_worker_env()
    takes_only(request, "cursor", "limit", "standing")
    standing = request.GET.get("standing", "")
    if standing and standing not in STANDINGS:
        raise BadRequest(f"There is no standing {standing[:40]!r}. It is one of: {', '.join(STANDINGS)}.")
    try:
        found = await get_job(env, job_id)
        asked = _Pages.asked(request, "job", job_id, standing)
        progress = await progress_of(env, found, standing=standing, number=asked.start, size=asked.limit)
    except JobNotFound as error:
        return error_answer(error, 404)
    cursor = asked.cursor(progress.next_number)
    return JsonResponse(await page_reads.run(progress_as_json, env, found, progress, cursor))


@rated(Kind.READS, Form.JSON)
@csrf_exempt
async def stop(request: HttpRequest, job_id: str) -> HttpResponse:
    """Stop a job: what waits is withdrawn, what is done stays. Only whoever started it has its ``stopKey``."""
    return await _stop(request, job_id) if request.method == "POST" else not_allowed(request, "POST")


@errors_answered
async def _stop(request: HttpRequest, job_id: str) -> JsonResponse:
    env = require_worker_env()
    if not may_stop(env, job_id, texts_of(body_object(request), "stopKey")["stopKey"]):
        message = "'stopKey' is not the key that was given to whoever started this job. It goes on."
        return JsonResponse({"error": "forbidden", "message": message}, status=403)
    try:
        stopped = await writers.run(stop_job, env, job_id)
    except JobNotFound as error:
        return error_answer(error, 404)
    return JsonResponse(await page_reads.run(job_as_json, env, stopped), status=202)
