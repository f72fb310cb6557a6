"""The API of submissions: submit a repository, list submissions, read one."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from submissions.api.answers import (
    body_object,
    errors_answered,
    limit_of,
    not_allowed,
    read_from_anywhere,
    repository_of,
    takes_only,
    texts_of,
)
from submissions.chosen_audiences import AudienceRefused, audience_to_submit
from submissions.discovery import Discovery, discover, select
from submissions.intake import Accepted, Outcome
from submissions.job_presentation import started_as_json
from submissions.jobs.records import Job
from submissions.jobs.work import take_in
from submissions.presentation import as_json, found_as_json, transition_as_json, withdrawal_of
from submissions.source.errors import InvalidRepositoryURL
from submissions.source.fetching import repository_url
from submissions.source_audiences import refuse_unseen
from submissions.store.near_ids import near_ids
from submissions.store.pages import submission_page
from submissions.store.queries import INDEX_PAGE, history
from submissions.store.records import SubmissionNotFound
from submissions.store.shown import read_shown, shown_submissions
from submissions.submitter import submitter_of
from submissions.told import told_answers, told_skills
from vskill.environments import WorkerEnv
from vskill.rate_limits.kinds import Form, Kind, rated
from vskill.visitors.reads import ahead_of_reads, list_reads, page_reads
from vskill.worker_context import require_worker_env

# What is answered where nothing was taken in, the first that there is.
_REFUSALS: Final = {
    Outcome.SHOWN_TO_OTHERS: AudienceRefused.code,
    Outcome.RESERVED: "name_reserved",
    Outcome.INVALID: "invalid_skill",
}
MAX_PAGE: Final = 200


# csrf_exempt: the API reads no cookie, so a browser cannot be made to submit in somebody's name.
@rated(Kind.SUBMISSIONS, Form.JSON)
@csrf_exempt
@read_from_anywhere
async def submissions(request: HttpRequest) -> HttpResponse:
    """List the submissions, the newest first, or submit a repository."""
    if request.method not in ("GET", "HEAD", "POST"):
        return not_allowed(request, "GET, HEAD, POST")
    return await _create(request) if request.method == "POST" else await _list(request)


@errors_answered
async def _list(request: HttpRequest) -> JsonResponse:
    takes_only(request, "repoUrl", "cursor", "limit")
    env = require_worker_env()
    wanted = request.GET.get("repoUrl", "")
    with contextlib.suppress(InvalidRepositoryURL):
        # A text that is no address is looked for as it is, and matches nothing.
        wanted = repository_url(env, wanted).url if wanted else ""
    entries, following = await list_reads.run(
        submission_page,
        env,
        repo_url=wanted,
        cursor=request.GET.get("cursor", ""),
        limit=limit_of(request, INDEX_PAGE, MAX_PAGE),
        shown=partial(shown_submissions, env),
    )
    items = [
        {
            "id": entry.submission_id,
            "state": entry.state,
            "repoUrl": entry.repo_url,
            "skillName": entry.skill_name,
            "skillPath": entry.skill_path,
        }
        for entry in entries
    ]
    return JsonResponse({"items": items, "nextCursor": following})


@errors_answered
async def _create(request: HttpRequest) -> JsonResponse:
    """Submit every skill of ``repoUrl``, or the one that ``skillPath`` or ``skillName`` names.

    With ``dryRun`` they are listed only, with their problems, notes and planned names. ``audience`` is to whom they are
    to be shown: ``public``, ``members`` or a team.

    Answers 202 when something new was accepted, with its present state, 200 when everything was known already, and 4xx
    with the reason otherwise. More than 50 skills become a job, which is answered with 202 and its address.
    """
    env = require_worker_env()
    body = body_object(request)
    texts = texts_of(body, "repoUrl", "skillPath", "skillName", "audience")
    dry_run = body.get("dryRun") is True
    with ahead_of_reads():
        await refuse_unseen(env, repository_of(texts))
        audience = await audience_to_submit(env, texts["repoUrl"], texts["audience"])
        discovery = await discover(env, repository_of(texts), path=texts["skillPath"], note=not dry_run)
        discovery = select(discovery, path=texts["skillPath"], name=texts["skillName"])
        if dry_run:
            return await page_reads.run(_found, env, discovery)
        by: Any = {"source": "api", "actor": "api", "submitter": await submitter_of(request), "audience": audience}
        answer = await take_in(env, discovery, **by)
    if isinstance(answer, Job):
        return JsonResponse({**await page_reads.run(started_as_json, env, answer), "submissions": []}, status=202)
    return await page_reads.run(_answer, env, discovery, answer)


def _found(env: WorkerEnv, discovery: Discovery) -> JsonResponse:
    skills = [found_as_json(skill, named=discovery.named) for skill in told_skills(env, discovery.skills)]
    return JsonResponse({"commitSha": discovery.commit_sha, "dryRun": True, "skills": skills})


def _answer(env: WorkerEnv, discovery: Discovery, accepted: list[Accepted]) -> JsonResponse:
    answers, commit_sha = told_answers(env, discovery.repo_url, accepted), discovery.commit_sha
    items = [_accepted(env, one) for one in answers]
    outcomes = {answer.outcome for answer in answers}
    body: dict[str, Any] = {"commitSha": commit_sha, "submissions": items}
    if len(items) == 1:
        body |= items[0]
    else:
        # For a client that expects one submission from a call: the first that was accepted.
        created = [item for item in items if item["outcome"] == Outcome.CREATED]
        body |= {key: (created or items)[0].get(key) for key in ("id", "state", "statusUrl")}
    if Outcome.CREATED in outcomes:
        return JsonResponse(body, status=202)
    if outcomes <= _REFUSALS.keys():
        reasons = "; ".join(f"{answer.skill.path or '.'}: {answer.reason}" for answer in answers)
        message = f"No skill of that repository can be checked: {reasons} Nothing was submitted."
        error = next(word for outcome, word in _REFUSALS.items() if outcome in outcomes)
        return JsonResponse({**body, "error": error, "message": message}, status=422)
    return JsonResponse(body)


def _accepted(env: WorkerEnv, answer: Accepted) -> dict[str, Any]:
    item: dict[str, Any] = {
        "outcome": answer.outcome,
        "skillName": answer.skill.name,
        "skillPath": answer.skill.path,
        "reason": answer.reason,
        "notes": list(answer.skill.notes),
    }
    if answer.submission is not None:
        item |= as_json(env, answer.submission)
    if answer.outcome is Outcome.DUPLICATE and answer.submission is not None:
        item |= {"duplicate": True, "submissionId": answer.submission.id}
    if answer.outcome is Outcome.ALREADY_VERIFIED:
        item["alreadyVerified"] = True
    if answer.outcome in (Outcome.BLOCKED, Outcome.WITHDRAWN):
        item["blocked"] = True
    return item


@rated(Kind.READS, Form.JSON)
@csrf_exempt
@read_from_anywhere
async def submission(request: HttpRequest, submission_id: str) -> HttpResponse:
    """Return one submission with its steps."""
    if request.method not in ("GET", "HEAD"):
        return not_allowed(request, "GET, HEAD")
    env = require_worker_env()
    try:
        return JsonResponse(await page_reads.run(_described, env, submission_id))
    except SubmissionNotFound as error:
        near = await page_reads.run(near_ids, env, submission_id)
        answer = {"error": error.code, "message": str(error), "near": near}
        return JsonResponse(answer, status=404)


def _described(env: WorkerEnv, submission_id: str) -> dict[str, Any]:
    found = read_shown(env, submission_id)
    steps = [transition_as_json(step) for step in history(env, submission_id)]
    return {**as_json(env, found), "withdrawn": withdrawal_of(env, found) or None, "history": steps}
