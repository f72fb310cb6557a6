"""The page on which skills are submitted: an address, the skills found there page by page, and which are picked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from marketplace.addresses import ref_words, skill_href
from marketplace.catalog import find_skill
from marketplace.skills.publishers import skill_identity
from submissions.chosen_audiences import AudienceRefused, audience_to_submit, words_to_choose
from submissions.discovery import DiscoveredSkill, Discovery, discover
from submissions.intake import Accepted, Outcome, is_offered
from submissions.job_presentation import job_href
from submissions.jobs.records import Job
from submissions.jobs.work import AT_ONCE, take_in
from submissions.listings import Choice, ListingExpired, ListingPage, keep_listing, matching, page_of
from submissions.models import SubmissionEntry
from submissions.pages.forms import ChoiceForm, RepositoryForm
from submissions.presentation import shown_slugs, submission_path
from submissions.source.errors import SourceError
from submissions.source_audiences import audience_of_source, refuse_unseen
from submissions.states import STATES, Group, State
from submissions.store.shown import shown_submissions
from submissions.submitter import submitter_of
from submissions.told import told_answers, told_listing, told_skills
from vskill.accounts.audiences import PUBLIC
from vskill.accounts.teams import words_for
from vskill.environments import WorkerEnv
from vskill.errors import VskillError
from vskill.processes.machine_faults import MachineFault
from vskill.rate_limits.kinds import Kind, rated
from vskill.visitors.reads import ahead_of_reads, intake_reads, page_reads
from vskill.worker_context import require_worker_env

_TEMPLATE = "submissions/submit.html"


@rated(Kind.SUBMISSIONS)
@require_http_methods(["GET", "HEAD", "POST"])
async def submit(request: HttpRequest) -> HttpResponse:
    """Ask for the address of a repository, list its skills, and submit those that are picked.

    ``?listing=`` shows a list that was made before, from number ``?start=``, narrowed down by ``?folder=`` and ``?q=``.
    """
    env = require_worker_env()
    given = request.POST if request.method == "POST" else request.GET
    if "listing" in given:
        return await _listed(request, env, given)
    if request.method != "POST":
        url = request.GET.get("repository_url", "")
        return render(request, _TEMPLATE, {"form": RepositoryForm(initial={"repository_url": url})})
    form = RepositoryForm(request.POST)
    if not form.is_valid():
        return render(request, _TEMPLATE, {"form": form}, status=400)
    try:
        with ahead_of_reads():
            await refuse_unseen(env, form.cleaned_data["repository_url"])
            discovery = await discover(env, form.cleaned_data["repository_url"])
    except VskillError as error:
        form.add_error("repository_url", str(error))
        later = isinstance(error, MachineFault) or (isinstance(error, SourceError) and error.transient)
        response = render(request, _TEMPLATE, {"form": form}, status=503 if later else 422)
        if later:
            response["Retry-After"] = "10"
        return response
    return await _choices(request, env, await keep_listing(env, discovery), discovery, form, Choice())


async def _listed(request: HttpRequest, env: WorkerEnv, given: Mapping[str, Any]) -> HttpResponse:
    """Show a page of a list that was made before, or submit what is picked on it."""
    listing = str(given["listing"])
    choices = ChoiceForm(given)
    choice = choices.choice()
    try:
        discovery = await told_listing(env, listing)
    except ListingExpired as error:
        form = RepositoryForm(given)
        form.add_error(None, str(error))
        return render(request, _TEMPLATE, {"form": form}, status=400)
    # The address as it was typed, which may name a branch.
    form = RepositoryForm({"repository_url": given.get("repository_url") or discovery.repo_url})
    if request.method != "POST":
        if not choices.is_valid():
            message = "The folder, the words or the start of this list are too long or no number. Nothing was read."
            return render(request, "400.html", {"message": message}, status=400)
        return await _choices(request, env, listing, discovery, form, choice, start=choices.start_at())
    return await _submit_chosen(request, env, listing, discovery, form, choice)


async def _choices(
    request: HttpRequest,
    env: WorkerEnv,
    listing: str,
    discovery: Discovery,
    form: RepositoryForm,
    choice: Choice,
    *,
    start: int = 0,
    status: int = 200,
) -> HttpResponse:
    page, found = await intake_reads.run(_page_and_found, env, discovery, choice, start)
    for_whom = await page_reads.run(_for_whom, env, discovery.repo_url, str(request.POST.get("audience", "")))

    def href(number: int) -> str:
        asked = {
            "listing": listing,
            "repository_url": form.data.get("repository_url", ""),
            "folder": choice.folder,
            "q": choice.words,
            "start": number or "",
        }
        return f"{request.path}?{urlencode({name: value for name, value in asked.items() if value})}"

    return render(
        request,
        _TEMPLATE,
        {
            "form": form,
            "repository": {
                "url": discovery.repo_url,
                "commit_sha": discovery.commit_sha,
                "ref": ref_words(discovery.ref),
            },
            "listing": listing,
            "choice": choice,
            "total": len(discovery.skills),
            "page": page,
            "narrowed": bool(choice.folder or choice.words),
            "first_number": page.start + 1,
            "last_number": page.start + len(page.skills),
            "as_job": page.matching > AT_ONCE,
            "whole_href": href(0) if not (choice.folder or choice.words) else f"{request.path}?listing={listing}",
            "previous_href": href(max(0, page.start - AT_ONCE)) if page.start else "",
            "next_href": href(page.following) if page.following is not None else "",
            "found": found,
            "for_whom": for_whom,
        },
        status=status,
    )


def _for_whom(env: WorkerEnv, repo_url: str, chosen: str) -> dict[str, Any]:
    """Return to whom policy shows the skills of a source, and to whom else whoever asks now may have them shown."""
    by_policy = audience_of_source(env, repo_url)
    return {
        "by_policy": words_for(env, by_policy),
        "is_public": by_policy == PUBLIC,
        "choices": [
            {"word": word, "label": label, "is_chosen": word == chosen}
            for word, label in words_to_choose(env, repo_url)
        ],
    }


def _page_and_found(
    env: WorkerEnv, discovery: Discovery, choice: Choice, start: int
) -> tuple[ListingPage, list[dict[str, Any]]]:
    page = page_of(discovery, choice, start=start)
    return page, _found(env, discovery, told_skills(env, page.skills))


def _found(env: WorkerEnv, discovery: Discovery, skills: Iterable[DiscoveredSkill]) -> list[dict[str, Any]]:
    """Return each skill with the status of its newest submission."""
    identities = {skill_identity(discovery.repo_url, skill.path): skill for skill in skills}
    entries = SubmissionEntry.objects.using(env.database)
    every = entries.live().filter(namespace=env.name, identity__in=list(identities), state__in=sorted(State))
    rows = shown_submissions(env, every)
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
                "reserved": skill.reserved,
                "notes": skill.notes,
                "slug": skill.slug if status == "new" else "",
                "held_by": skill.held_by,
                "internal": skill.internal,
                "status": status,
                "status_label": "" if info is None else info.label,
                "href": _href(entry, shown) if entry is not None else "",
                "selectable": not (skill.problems or skill.reserved) and status not in ("pending", "held", "blocked"),
                "checked": not (skill.problems or skill.reserved) and status == "new" and is_offered(discovery, skill),
            }
        )
    return found


def _href(entry: SubmissionEntry, shown: Mapping[str, str]) -> str:
    slug = shown.get(entry.submission_id)
    return skill_href(slug) if slug is not None else submission_path(entry.submission_id)


async def _submit_chosen(
    request: HttpRequest, env: WorkerEnv, listing: str, discovery: Discovery, form: RepositoryForm, choice: Choice
) -> HttpResponse:
    chosen = await intake_reads.run(_chosen, discovery, choice, request.POST)
    try:
        audience = await audience_to_submit(env, discovery.repo_url, request.POST.get("audience", ""))
    except AudienceRefused as error:
        form.add_error(None, str(error))
        return await _choices(request, env, listing, discovery, form, choice, status=422)
    by: Any = {"source": "form", "actor": "visitor", "submitter": await submitter_of(request), "audience": audience}
    answer = await take_in(env, discovery, picked=chosen, **by)
    if isinstance(answer, Job):
        return redirect(job_href(env, answer.id, may_stop=True))
    if not answer:
        form.add_error(None, "Pick at least one skill. Nothing was submitted.")
        return await _choices(request, env, listing, discovery, form, choice, status=400)
    answer = await intake_reads.run(told_answers, env, discovery.repo_url, answer)
    if refused := [one for one in answer if one.submission is None]:
        for one in refused:
            form.add_error(None, _refusal(one))
        return await _choices(request, env, listing, discovery, form, choice, status=422)
    if len(answer) == 1 and (only := answer[0].submission) is not None:
        slug = only.text("slug") if answer[0].outcome is Outcome.ALREADY_VERIFIED else ""
        if slug and await find_skill(env, slug) is not None:
            return redirect(skill_href(slug))
        return redirect("submissions:submission", only.id)
    return redirect(f"{reverse('submissions:queue')}?{urlencode({'repository': discovery.repo_url})}")


def _chosen(discovery: Discovery, choice: Choice, given: Any) -> Sequence[DiscoveredSkill]:
    """Return the skills that are picked by their paths, or all that match and would be submitted together."""
    if "all" in given:
        found = matching(discovery, choice)
        return [one for one in found if not (one.problems or one.reserved) and is_offered(discovery, one)]
    paths = set(given.getlist("paths"))
    return [one for one in discovery.skills if one.path in paths]


def _refusal(answer: Accepted) -> str:
    name = answer.skill.name or answer.skill.path
    if answer.outcome is Outcome.BLOCKED:
        return f"{name}: this source is on the block list of this registry ({answer.reason}). It was not submitted."
    if answer.outcome is Outcome.NOT_TOLD:
        return f"{name}: {answer.reason}"
    return f"{name}: {answer.reason} It was not submitted."
