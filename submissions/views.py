"""The pages of submissions: submit, follow one, and the public queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import BadRequest
from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from marketplace.addresses import ref_words, skill_href
from marketplace.catalog import find_skill
from marketplace.skills.publishers import skill_identity
from submissions.discovery import Discovery, DiscoveryExpired, discover, read_discovery, sign_discovery
from submissions.forms import RepositoryForm
from submissions.intake import Accepted, Outcome, accept
from submissions.models import SubmissionEntry
from submissions.presentation import GROUP_LABELS, listed, shown_slugs, submission_page, submission_path
from submissions.queue.pause import get_pause
from submissions.source.errors import SourceError
from submissions.states import ACTIVE_STATES, STATES, Group, State
from submissions.store.queries import count_states, get_submission, get_submission_index, recently_decided
from submissions.store.records import SubmissionNotFound
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.kv.threads import readers
from vskill.processes.heartbeat import living
from vskill.processes.machine_faults import MachineFault
from vskill.rate_limits.kinds import Kind, rated
from vskill.worker_context import require_worker_env

MAX_PICKED = 200


@rated(Kind.SUBMISSIONS)
@require_http_methods(["GET", "HEAD", "POST"])
async def submit(request: HttpRequest) -> HttpResponse:
    """Ask for the address of a repository, list its skills, and submit those that are picked."""
    env = require_worker_env()
    if request.method != "POST":
        url = request.GET.get("repository_url", "")
        return render(request, "submissions/submit.html", {"form": RepositoryForm(initial={"repository_url": url})})
    if "token" in request.POST:
        return await _submit_picked(request, env)
    form = RepositoryForm(request.POST)
    if not form.is_valid():
        return render(request, "submissions/submit.html", {"form": form}, status=400)
    try:
        discovery = await discover(env, form.cleaned_data["repository_url"])
    except VskillError as error:
        form.add_error("repository_url", str(error))
        later = isinstance(error, MachineFault) or (isinstance(error, SourceError) and error.transient)
        response = render(request, "submissions/submit.html", {"form": form}, status=503 if later else 422)
        if later:
            response["Retry-After"] = "10"
        return response
    return await _choices(request, env, discovery, form)


async def _choices(
    request: HttpRequest, env: WorkerEnv, discovery: Discovery, form: RepositoryForm, status: int = 200
) -> HttpResponse:
    return render(
        request,
        "submissions/submit.html",
        {
            "form": form,
            "repository": {
                "url": discovery.repo_url,
                "commit_sha": discovery.commit_sha,
                "ref": ref_words(discovery.ref),
            },
            "found": await readers.run(_found, env, discovery),
            "token": sign_discovery(env, discovery),
        },
        status=status,
    )


def _found(env: WorkerEnv, discovery: Discovery) -> list[dict[str, Any]]:
    """Return each skill of a discovery with the status of its newest submission."""
    identities = {skill_identity(discovery.repo_url, skill.path): skill for skill in discovery.skills}
    entries = SubmissionEntry.objects.using(env.database)
    rows = entries.live().filter(namespace=env.name, identity__in=list(identities), state__in=sorted(State))
    # A skill may have been submitted any number of times; only the newest submission is read.
    ids = rows.order_by().values("identity").annotate(newest=Max("id")).values_list("newest", flat=True)
    newest = {entry.identity: entry for entry in entries.filter(pk__in=list(ids))}
    shown = shown_slugs(env, newest.values())
    found: list[dict[str, Any]] = []
    for identity, skill in identities.items():
        entry = newest.get(identity)
        info = STATES[State(entry.state)] if entry is not None else None
        status = "new" if info is None else "pending" if info.group is Group.ACTIVE else str(info.group)
        found.append(
            {
                "path": skill.path,
                "name": skill.name,
                "description": skill.description,
                "problems": skill.problems,
                "notes": skill.notes,
                "internal": skill.internal,
                "status": status,
                "status_label": "" if info is None else info.label,
                "href": _href(entry, shown) if entry is not None else "",
                "selectable": not skill.problems and status not in ("pending", "held", "blocked"),
                "checked": not skill.problems and status == "new" and (discovery.named or not skill.internal),
            }
        )
    return found


def _href(entry: SubmissionEntry, shown: Mapping[str, str]) -> str:
    slug = shown.get(entry.submission_id)
    return skill_href(slug) if slug is not None else submission_path(entry.submission_id)


async def _submit_picked(request: HttpRequest, env: WorkerEnv) -> HttpResponse:
    form = RepositoryForm(request.POST)
    try:
        discovery = read_discovery(env, request.POST["token"])
    except DiscoveryExpired as error:
        form.add_error(None, str(error))
        return render(request, "submissions/submit.html", {"form": form}, status=400)
    paths = request.POST.getlist("paths")
    if len(paths) > MAX_PICKED:
        raise BadRequest(f"At most {MAX_PICKED} skills are submitted at once. Nothing was submitted.")
    answers = await accept(env, discovery, paths, source="form", actor="visitor")
    if not answers:
        form.add_error(None, "Pick at least one skill. Nothing was submitted.")
        return await _choices(request, env, discovery, form, status=400)
    if refused := [answer for answer in answers if answer.submission is None]:
        for answer in refused:
            form.add_error(None, _refusal(answer))
        return await _choices(request, env, discovery, form, status=422)
    if len(answers) == 1 and (only := answers[0].submission) is not None:
        slug = only.text("slug") if answers[0].outcome is Outcome.ALREADY_VERIFIED else ""
        if slug and await find_skill(env, slug) is not None:
            return redirect(skill_href(slug))
        return redirect("submissions:submission", only.id)
    return redirect(f"{reverse('submissions:queue')}?{urlencode({'repository': discovery.repo_url})}")


def _refusal(answer: Accepted) -> str:
    name = answer.skill.name or answer.skill.path
    if answer.outcome is Outcome.BLOCKED:
        return f"{name}: this source is on the block list of this registry ({answer.reason}). It was not submitted."
    return f"{name}: {answer.reason} It was not submitted."


@require_safe
async def submission(request: HttpRequest, submission_id: str) -> HttpResponse:
    """Show the state of one submission; ``?fragment=1`` returns the part of the page that refreshes itself."""
    env = require_worker_env()
    try:
        found = await get_submission(env, submission_id)
    except SubmissionNotFound as error:
        raise Http404(str(error)) from error
    fragment = "fragment" in request.GET
    template = "submissions/_submission_live.html" if fragment else "submissions/submission.html"
    response = render(request, template, await submission_page(env, found))
    response["Cache-Control"] = "no-store"
    return response


@require_safe
async def queue(request: HttpRequest) -> HttpResponse:
    """Show what waits and what was decided.

    ``?repository=`` shows one repository, ``?fragment=1`` returns the part of the page that refreshes itself.
    """
    env = require_worker_env()
    repository = request.GET.get("repository", "")
    states, entries, decided = await readers.run(_queue_rows, env, repository)
    counts = dict.fromkeys(GROUP_LABELS, 0)
    for state, count in states.items():
        counts[STATES[state].group] += count
    template = "submissions/_queue_live.html" if "fragment" in request.GET else "submissions/queue.html"
    pause = await get_pause(env)
    response = render(
        request,
        template,
        {
            "counts": [
                {"group": group, "label": label, "count": counts[group]} for group, label in GROUP_LABELS.items()
            ],
            "as_of": timezone.now(),
            "waiting": [listed(entry) for entry in entries],
            "decided": [listed(entry) for entry in decided],
            "repository": repository,
            "paused": {"until": pause.until, "reason": pause.why} if pause is not None else None,
            "stale_consumer": not await living(env, "consumer"),
        },
    )
    response["Cache-Control"] = "no-store"
    return response


def _queue_rows(
    env: WorkerEnv, repository: str
) -> tuple[dict[State, int], list[SubmissionEntry], list[SubmissionEntry]]:
    if repository:
        return count_states(env), get_submission_index(env, repo_url=repository, limit=MAX_PICKED), []
    waiting = get_submission_index(env, states=ACTIVE_STATES, limit=100, oldest_first=True)
    return count_states(env), waiting, recently_decided(env)
