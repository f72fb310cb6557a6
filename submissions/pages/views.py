"""The pages that follow submissions: one of them, and the public queue."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from marketplace.catalog import HowMany
from submissions.appeals import MOST, InvalidAppeal, appeal
from submissions.models import SubmissionEntry
from submissions.presentation import GROUP_LABELS, listed, submission_page, submission_path
from submissions.queue.pause import get_pause_sync
from submissions.states import ACTIVE_STATES, STATES, Group, State
from submissions.store.near_ids import near_ids
from submissions.store.queries import get_submission_index, recently_decided
from submissions.store.records import SubmissionNotFound
from submissions.store.shown import read_shown, shown_submissions
from submissions.store.state_counts import count_states
from vskill.accounts.access import offers_sign_in
from vskill.environments import WorkerEnv
from vskill.kv.errors import VersionConflict
from vskill.kv.threads import writers
from vskill.processes.heartbeat import living_sync
from vskill.rate_limits.kinds import Kind, rated
from vskill.visitors.reads import list_reads, page_reads
from vskill.web.absent import Near, NotThere
from vskill.web.query_strings import unknown_parameter
from vskill.worker_context import require_worker_env

# Submissions of one repository that the queue shows.
_MOST_OF_REPOSITORY = 200
# Submissions of one group that it shows.
_MOST_OF_GROUP = 40
_MOST_WAITING = 100


@require_safe
async def submission(request: HttpRequest, submission_id: str) -> HttpResponse:
    """Show the state of one submission; ``?fragment=1`` returns the part of the page that refreshes itself."""
    env = require_worker_env()
    fragment = "fragment" in request.GET
    template = "submissions/_submission_live.html" if fragment else "submissions/submission.html"
    try:
        response = await page_reads.render(request, template, _submission_context, env, submission_id)
    except SubmissionNotFound as error:
        raise await _not_there(env, submission_id, error) from error
    response["Cache-Control"] = "no-store"
    return response


@rated(Kind.SUBMISSIONS)
@require_POST
async def appeal_against(request: HttpRequest, submission_id: str) -> HttpResponse:
    """Take the appeal of an author and show the submission again, with what is wrong where it is not taken."""
    env = require_worker_env()
    error = ""
    try:
        await writers.run(_appeal, env, submission_id, request.POST.get("text", ""))
    except SubmissionNotFound as missing:
        raise await _not_there(env, submission_id, missing) from missing
    except (InvalidAppeal, VersionConflict) as refused:
        error = str(refused)
    if not error:
        return redirect(f"{submission_path(submission_id)}#appeal-title")
    context = await page_reads.run(_submission_context, env, submission_id)
    shown = {**context, "appeal_error": error, "appeal_text": request.POST.get("text", "")[:MOST]}
    response = render(request, "submissions/submission.html", shown, status=422)
    response["Cache-Control"] = "no-store"
    return response


def _appeal(env: WorkerEnv, submission_id: str, text: str) -> None:
    read_shown(env, submission_id)
    appeal(env, submission_id, text)


async def _not_there(env: WorkerEnv, submission_id: str, error: SubmissionNotFound) -> NotThere:
    near = await page_reads.run(near_ids, env, submission_id)
    return NotThere(str(error), [Near(one, submission_path(one)) for one in near])


def _submission_context(env: WorkerEnv, submission_id: str) -> dict[str, Any]:
    return {**submission_page(env, read_shown(env, submission_id)), "offers_notifications": offers_sign_in(env)}


@require_safe
async def queue(request: HttpRequest) -> HttpResponse:
    """Show what waits and what was decided.

    ``?repository=`` shows one repository and ``?group=`` what ended in one way, the newest first; ``?fragment=1``
    returns the part of the page that refreshes itself. Another group is 400 with those that there are.
    """
    env = require_worker_env()
    if fault := unknown_parameter(request.GET, ("repository", "group", "fragment")):
        return render(request, "400.html", {"message": fault}, status=400)
    repository, group = request.GET.get("repository", ""), request.GET.get("group", "")
    if group and group not in set(Group):
        message = f"There is no group {group[:40]!r} of submissions. It is one of: {', '.join(Group)}."
        return render(request, "400.html", {"message": message}, status=400)
    template = "submissions/_queue_live.html" if "fragment" in request.GET else "submissions/queue.html"
    response = await list_reads.render(request, template, _queue_context, env, repository, group)
    response["Cache-Control"] = "no-store"
    return response


def _queue_context(env: WorkerEnv, repository: str, group: str) -> dict[str, Any]:
    states, entries, decided = _queue_rows(env, repository, group)
    counts = dict.fromkeys(GROUP_LABELS, HowMany(0))
    for state, (number, or_more) in states.items():
        before = counts[STATES[state].group]
        counts[STATES[state].group] = HowMany(before.number + number, before.or_more or or_more)
    pause = get_pause_sync(env)
    return {
        "counts": [{"group": group, "label": label, "count": counts[group]} for group, label in GROUP_LABELS.items()],
        "as_of": timezone.now(),
        "waiting": [listed(entry) for entry in entries],
        "decided": [listed(entry) for entry in decided],
        "repository": repository,
        "group": group,
        "group_label": GROUP_LABELS[Group(group)] if group else "",
        "paused": {"until": pause.until, "reason": pause.why} if pause is not None else None,
        "stale_consumer": not living_sync(env, "consumer"),
    }


def _queue_rows(
    env: WorkerEnv, repository: str, group: str
) -> tuple[dict[State, HowMany], list[SubmissionEntry], list[SubmissionEntry]]:
    shown = partial(shown_submissions, env)
    counts = count_states(env)
    if repository and not group:
        return counts, get_submission_index(env, repo_url=repository, limit=_MOST_OF_REPOSITORY, shown=shown), []
    # There is a query for each state, and mostly nothing is in those that a submission only passes.
    wanted = [state for state, info in STATES.items() if info.group == group] if group else sorted(ACTIVE_STATES)
    states = [state for state in wanted if counts[state].number]
    found: list[SubmissionEntry] = []
    if states and group:
        found = get_submission_index(env, states=states, repo_url=repository, limit=_MOST_OF_GROUP, shown=shown)
    elif states:
        found = get_submission_index(env, states=states, limit=_MOST_WAITING, oldest_first=True, shown=shown)
    return counts, found, [] if group else recently_decided(env, shown=shown)
