"""The page of a job: how far it is, where its skills stand, and the button that stops it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from marketplace.addresses import ref_words
from submissions.job_presentation import job_href
from submissions.jobs.progress import PAGE, STANDINGS, JobLine, Progress, known_before, progress_of
from submissions.jobs.records import Job, JobNotFound, JobState, get_job, may_stop
from submissions.jobs.work import stop_job
from submissions.pages.forms import ChoiceForm
from submissions.presentation import GROUP_LABELS, submission_path
from submissions.states import STATES, Group
from vskill.accounts.teams import words_for
from vskill.environments import WorkerEnv
from vskill.kv.clock import parse_isoformat
from vskill.kv.threads import writers
from vskill.visitors.reads import page_reads
from vskill.web.query_strings import unknown_parameter
from vskill.worker_context import require_worker_env

_LABELS = {
    "waiting": "Waiting for its turn",
    **{str(group): label for group, label in GROUP_LABELS.items()},
    "invalid": "Cannot be checked",
    "internal": "Internal, left out",
    "reserved": "Name reserved for another owner",
    "shown_to_others": "Shown to others than chosen",
    "withdrawn": "Withdrawn here",
    "failed": "Could not be submitted",
    "stopped": "Not submitted: stopped",
}
_STATE_SENTENCES = {
    JobState.ACCEPTING: "Its skills are being accepted, in the order of their folders.",
    JobState.ACCEPTED: "All its skills are accepted; each is checked and decided by itself.",
    JobState.STOPPING: "It is being stopped: what waits is withdrawn.",
    JobState.STOPPED: "It was stopped. What waited was withdrawn; what was in work or done stays.",
}


@require_safe
async def job(request: HttpRequest, job_id: str) -> HttpResponse:
    """Show how far a job is; ``?fragment=1`` returns the part of the page that refreshes itself.

    Another ``?standing=`` than there are is 400 with those that there are, and so is a ``?start=`` that is no number.
    """
    env = require_worker_env()
    found = await _found(env, job_id)
    given = ChoiceForm(request.GET)
    standing = request.GET.get("standing", "")
    fault = unknown_parameter(request.GET, ("standing", "start", "key", "fragment"))
    if standing and standing not in STANDINGS:
        fault = f"There is no standing {standing[:40]!r} of skills. It is one of: {', '.join(STANDINGS)}."
    if fault or not given.is_valid():
        message = fault or "The parameter start is a number that a link of this page has. Nothing was read."
        return render(request, "400.html", {"message": message}, status=400)
    try:
        progress = await progress_of(env, found, standing=standing, start=given.start_at())
    except JobNotFound as error:
        raise Http404(str(error)) from error
    key = request.GET.get("key", "")
    key = key if may_stop(env, job_id, key) else ""
    template = "submissions/_job_live.html" if "fragment" in request.GET else "submissions/job.html"
    shown_to = await page_reads.run(words_for, env, found.audience) if found.audience else ""
    response = render(request, template, {**_context(env, found, progress, standing, key), "shown_to": shown_to})
    response["Cache-Control"] = "no-store"
    return response


@require_POST
async def stop(request: HttpRequest, job_id: str) -> HttpResponse:
    """Stop a job for whoever holds its key, and show its page."""
    env = require_worker_env()
    found = await _found(env, job_id)
    if not may_stop(env, job_id, request.POST.get("key", "")):
        return redirect(job_href(env, found.id))
    await writers.run(stop_job, env, job_id)
    return redirect(job_href(env, found.id, may_stop=True))


async def _found(env: WorkerEnv, job_id: str) -> Job:
    try:
        return await get_job(env, job_id)
    except JobNotFound as error:
        raise Http404(str(error)) from error


def _context(env: WorkerEnv, found: Job, progress: Progress, standing: str, key: str) -> dict[str, Any]:
    path = job_href(env, found.id)

    def href(start: int = 0, chosen: str = standing, **more: str) -> str:
        asked = {"key": key, "standing": chosen, "start": start or "", **more}
        query = urlencode({name: value for name, value in asked.items() if value})
        return f"{path}?{query}" if query else path

    ended = found.state is JobState.STOPPED or (found.state is JobState.ACCEPTED and progress.finished)
    return {
        "job": found,
        "sentence": _STATE_SENTENCES[found.state],
        "ref": ref_words(found.ref),
        "created_at": parse_isoformat(found.created_at),
        "updated_at": parse_isoformat(found.updated_at),
        "handled": progress.handled,
        "known_before": known_before(progress),
        "is_final": ended and progress.finished,
        "can_stop": bool(key) and found.state in (JobState.ACCEPTING, JobState.ACCEPTED) and not progress.finished,
        "stop_key": key,
        "standings": [
            {"label": label, "count": progress.standings[name], "href": href(chosen=name), "active": name == standing}
            for name, label in _LABELS.items()
            if progress.standings.get(name)
        ],
        "standing_label": _LABELS.get(standing, ""),
        "all_href": href(chosen=""),
        "lines": [_line(line) for line in progress.lines],
        "first_number": progress.start + 1,
        "fragment_href": href(progress.start, fragment="1"),
        "previous_href": href(max(0, progress.start - PAGE)) if progress.start else "",
        "next_href": href(progress.following) if progress.following is not None else "",
    }


def _line(line: JobLine) -> dict[str, Any]:
    one = line.skill
    return {
        "name": one.skill.name or one.skill.path or ".",
        "path": one.skill.path or ".",
        "reason": one.reason,
        "href": submission_path(one.submission_id) if one.submission_id else "",
        "group": str(STATES[line.state].group) if line.state is not None else str(Group.ACTIVE),
        "has_state": line.state is not None,
        "label": STATES[line.state].label if line.state is not None else _LABELS.get(line.standing, line.standing),
    }
